// SPDX-License-Identifier: Apache-2.0
#include "router/core/hot_prefixes.h"

#include <algorithm>

namespace brigade::router {

std::uint64_t HotPrefixes::detours(const BlockHash& last) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&last](const Entry& entry) { return entry.last == last; });
  return it == entries_.end() ? 0 : it->num_tokens;
}

void HotPrefixes::add_detour(const BlockHash& last, std::uint64_t num_tokens) {
  const std::uint64_t before = detours(last);
  forget(last);
  if (entries_.size() == kMaxPrefixes) entries_.erase(entries_.begin());
  entries_.push_back({.last = last, .num_tokens = before + num_tokens});
}

void HotPrefixes::forget(const BlockHash& last) {
  std::erase_if(entries_, [&last](const Entry& entry) { return entry.last == last; });
}

}  // namespace brigade::router
