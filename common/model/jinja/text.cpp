// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/text.h"

#include <algorithm>

#include "common/base/check.h"

namespace brigade::model::jinja {

void Text::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().trusted == trusted) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), trusted});
  }
}

void Text::append(const Text& other, std::size_t begin, std::size_t end) {
  INVARIANT(begin <= end && end <= other.size()) << begin << " to " << end;
  if (begin == end) return;
  for (auto run = other.run_of(begin); begin < end; ++run) {
    const std::size_t stop = std::min(run->end, end);
    append(std::string_view(other.bytes_).substr(begin, stop - begin), run->trusted);
    begin = stop;
  }
}

Text Text::slice(std::size_t begin, std::size_t end) const {
  Text out;
  out.append(*this, begin, end);
  return out;
}

std::vector<Text::Run>::const_iterator Text::run_of(std::size_t pos) const {
  return std::upper_bound(runs_.begin(), runs_.end(), pos,
                          [](std::size_t at, const Run& run) { return at < run.end; });
}

}  // namespace brigade::model::jinja
