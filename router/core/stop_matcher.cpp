// SPDX-License-Identifier: Apache-2.0
#include "router/core/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace brigade::router {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include)
    : stops_(std::move(stops)), include_(include) {}

std::string StopMatcher::push(std::string_view text, bool may_stop) {
  if (stops_.empty()) return std::string(text);
  held_ += text;
  if (!may_stop) no_end_before_ = held_.size();
  std::size_t best_end = std::string::npos;
  std::size_t best_begin = 0;
  for (const std::string& stop : stops_) {
    const std::size_t from =
        no_end_before_ + 1 > stop.size() ? no_end_before_ + 1 - stop.size() : 0;
    const std::size_t begin = held_.find(stop, from);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + stop.size();
    if (end < best_end || (end == best_end && begin < best_begin)) {
      best_end = end;
      best_begin = begin;
      matched_ = stop;
    }
  }
  const std::size_t end_of_text = include_ ? best_end : best_begin;
  const std::size_t certain = matched_ ? end_of_text : held_.size() - suffix_to_hold();
  std::string out = held_.substr(0, certain);
  held_.erase(0, matched_ ? held_.size() : certain);
  no_end_before_ = no_end_before_ > certain ? no_end_before_ - certain : 0;
  return out;
}

std::size_t StopMatcher::suffix_to_hold() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > longest; --length) {
      if (held_.compare(held_.size() - length, length, stop, 0, length) == 0) longest = length;
    }
  }
  return longest;
}

std::string StopMatcher::flush() {
  no_end_before_ = 0;
  return std::exchange(held_, {});
}

}  // namespace brigade::router
