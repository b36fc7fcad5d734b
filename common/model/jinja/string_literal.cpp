// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/string_literal.h"

#include <charconv>
#include <cstdint>

#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

/// Reads a literal from front to back.
class Reader final {
 public:
  explicit Reader(std::string_view literal) : literal_(literal) {}

  std::optional<std::string> run() {
    while (pos_ < literal_.size()) {
      const char c = literal_[pos_++];
      if (c != '\\') {
        out_ += c;
      } else if (pos_ == literal_.size() || !escape(literal_[pos_++])) {
        return std::nullopt;
      }
    }
    return std::move(out_);
  }

 private:
  bool escape(char letter) {
    switch (letter) {
      case '\n':
        return true;  // the line goes on
      case '\\':
      case '\'':
      case '"':
        out_ += letter;
        return true;
      case 'n':
        out_ += '\n';
        return true;
      case 't':
        out_ += '\t';
        return true;
      case 'r':
        out_ += '\r';
        return true;
      case 'a':
        out_ += '\a';
        return true;
      case 'b':
        out_ += '\b';
        return true;
      case 'f':
        out_ += '\f';
        return true;
      case 'v':
        out_ += '\v';
        return true;
      case 'x':
        return code_point(number(2, 16));
      case 'u':
        return code_point(number(4, 16));
      case 'U':
        return code_point(number(8, 16));
      case 'N':
        return false;
      default:
        break;
    }
    if (letter >= '0' && letter <= '7') {
      --pos_;
      int digits = 0;
      while (digits < 3 && pos_ + digits < literal_.size() && literal_[pos_ + digits] >= '0' &&
             literal_[pos_ + digits] <= '7') {
        ++digits;
      }
      return code_point(number(digits, 8));
    }
    out_ += '\\';
    out_ += letter;
    return true;
  }

  std::optional<std::uint32_t> number(int digits, int base) {
    const char* const first = literal_.data() + pos_;
    if (literal_.size() - pos_ < static_cast<std::size_t>(digits)) return std::nullopt;
    std::uint32_t value = 0;
    const auto result = std::from_chars(first, first + digits, value, base);
    if (result.ec != std::errc() || result.ptr != first + digits) return std::nullopt;
    pos_ += static_cast<std::size_t>(digits);
    return value;
  }

  bool code_point(std::optional<std::uint32_t> code) {
    if (!code || *code > 0x10ffff) return false;
    const bool high = *code >= 0xd800 && *code < 0xdc00;
    if (high && literal_.substr(pos_, 2) == "\\u") {
      const std::size_t mark = pos_;
      pos_ += 2;
      const auto low = number(4, 16);
      if (low && *low >= 0xdc00 && *low < 0xe000) {
        append_utf8(0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00), out_);
        return true;
      }
      pos_ = mark;
    }
    append_utf8(*code >= 0xd800 && *code < 0xe000 ? 0xfffd : *code, out_);
    return true;
  }

  std::string_view literal_;
  std::size_t pos_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> unescape(std::string_view literal) {
  return Reader(literal).run();
}

}  // namespace brigade::model::jinja
