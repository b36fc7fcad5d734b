// SPDX-License-Identifier: Apache-2.0
#include "common/model/special_tokens.h"

#include <algorithm>

#include "common/base/check.h"

namespace brigade::model {

void SpecialTokens::add(std::string_view text, std::int32_t id) {
  INVARIANT(!text.empty() && text.size() <= kMaxLength) << text.size();
  starts_[static_cast<std::uint8_t>(text[0])] = true;
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    std::uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<std::uint32_t>(nodes_.size());
      auto& children = nodes_[node].children;
      children.insert(std::lower_bound(children.begin(), children.end(), std::pair{byte, 0U}),
                      {byte, next});
      nodes_.emplace_back();
    }
    node = next;
  }
  nodes_[node].id = id;
}

std::uint32_t SpecialTokens::child(std::uint32_t node, std::uint8_t byte) const {
  const auto& children = nodes_[node].children;
  const auto it = std::lower_bound(children.begin(), children.end(), std::pair{byte, 0U});
  return it != children.end() && it->first == byte ? it->second : 0;
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text,
                                                        std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<std::uint8_t>(text[begin])]) continue;
    std::optional<Match> longest;
    std::uint32_t node = 0;
    for (std::size_t i = begin; i < text.size(); ++i) {
      node = child(node, static_cast<std::uint8_t>(text[i]));
      if (node == 0) break;
      if (nodes_[node].id >= 0) longest = Match{begin, i + 1 - begin, nodes_[node].id};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace brigade::model
