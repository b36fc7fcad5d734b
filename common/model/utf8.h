// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace brigade::model {

/// What stands at a place in a byte string read as UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, at most U+10FFFF).
struct Utf8Step {
  enum class Kind : std::uint8_t {
    kCharacter,   ///< `length` bytes are one character, `code_point`
    kInvalid,     ///< `length` bytes are a maximal part of an ill-formed sequence (WHATWG,
                  ///< Unicode 3.9): one U+FFFD
    kIncomplete,  ///< the string ends inside what may yet become a character; `length` bytes are
                  ///< left
  };
  Kind kind;
  std::size_t length;  ///< at least 1
  char32_t code_point;
};

/// Requires pos < text.size().
[[nodiscard]] Utf8Step utf8_step(std::string_view text, std::size_t pos);

/// Appends a code point (not a surrogate, at most U+10FFFF) as UTF-8.
void append_utf8(char32_t code_point, std::string& out);

/// Appends `bytes` with every maximal invalid part replaced by U+FFFD, and returns how many bytes
/// were taken: all with `final`; without, an incomplete character at the end (at most 3 bytes) is
/// left.
std::size_t append_lossy_utf8(std::string_view bytes, bool final, std::string& out);

}  // namespace brigade::model
