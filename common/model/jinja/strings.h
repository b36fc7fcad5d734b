// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "common/model/jinja/budget.h"
#include "common/model/jinja/text.h"
#include "common/model/jinja/value.h"

// Python's string operations on marked text. Positions and counts are of characters where Python's
// are.
namespace brigade::model::jinja {

/// What str.strip() and str.split() take for white space.
[[nodiscard]] bool is_space(char32_t code_point);

/// Simple case mapping of ASCII, Latin, Greek and Cyrillic; other scripts stay as they are.
[[nodiscard]] char32_t to_upper(char32_t code_point);
[[nodiscard]] char32_t to_lower(char32_t code_point);

/// Byte position of `needle` at or after `from`, npos where there is none. Linear (two-way), unlike
/// std::string::find.
[[nodiscard]] std::size_t find_bytes(std::string_view text, std::string_view needle,
                                     std::size_t from);

[[nodiscard]] std::size_t count_characters(std::string_view text);
/// Byte offset of each character and, last, the size.
[[nodiscard]] std::vector<std::size_t> character_offsets(Budget& budget, std::string_view text);

/// Without `characters` (nullptr), white space is taken off.
[[nodiscard]] Text strip(Budget& budget, const Text& text, const Text* characters, bool left,
                         bool right);

enum class CaseRule : std::uint8_t {
  kUpper,
  kLower,
  kCapitalize,   ///< first character upper, others lower
  kTitle,        ///< str.title(): upper after what has no case
  kTitleFilter,  ///< the filter `title`: upper at the start and after one of -, space, ( { [ <
};
[[nodiscard]] Text map_case(Budget& budget, const Text& text, CaseRule rule);

enum class Justify : std::uint8_t { kLeft, kRight, kCenter };

/// Filled up to `width` characters with `fill`, which is one character.
[[nodiscard]] Text justify(Budget& budget, const Text& text, std::int64_t width, const Text& fill,
                           Justify how);

inline constexpr std::int64_t kNoLimit = -1;

/// At most `max_replacements` from the left. An empty `from` stands between all characters, as in
/// Python.
[[nodiscard]] Text replace(Budget& budget, const Text& text, const Text& from, const Text& to,
                           std::int64_t max_replacements);

/// str.split and, with `from_right`, str.rsplit. Without a separator (nullptr): at runs of white
/// space. Fails on an empty one.
[[nodiscard]] std::vector<Value> split(Budget& budget, const Text& text, const Text* separator,
                                       std::int64_t max_splits, bool from_right);

/// At \n, \r\n and \r (Python knows eight more, which no template means).
[[nodiscard]] std::vector<Text> split_lines(Budget& budget, const Text& text, bool keep_ends);

}  // namespace brigade::model::jinja
