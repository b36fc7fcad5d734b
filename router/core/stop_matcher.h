// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::router {

/// Looks for stop strings in text that comes in pieces, and holds back what may yet become one: the
/// longest suffix that begins a stop string. What comes out does not depend on how the text was cut
/// into pieces.
class StopMatcher final {
 public:
  /// `stops`: none empty. With `include` the one that is found is part of the output.
  explicit StopMatcher(std::vector<std::string> stops, bool include = false);

  /// Adds text and returns what has become certain. A stop string that ends in this text ends the
  /// output before it (or with it), unless `may_stop` is false: then this text counts only as the
  /// beginning of one that ends later.
  std::string push(std::string_view text, bool may_stop);
  /// What is held back, when the output ends otherwise.
  std::string flush();

  /// The stop string found: the first to end, of those the longest.
  [[nodiscard]] const std::optional<std::string>& matched() const { return matched_; }

 private:
  [[nodiscard]] std::size_t suffix_to_hold() const;

  std::vector<std::string> stops_;
  bool include_;
  std::string held_;
  std::size_t no_end_before_ = 0;  ///< in held_: a stop string must end after this many bytes
  std::optional<std::string> matched_;
};

}  // namespace brigade::router
