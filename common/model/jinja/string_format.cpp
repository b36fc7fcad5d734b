// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/string_format.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/model/jinja/format.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/strings.h"
#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

constexpr std::size_t kNone = std::string::npos;

/// What stands between % and the letter.
struct Conversion {
  bool left = false;
  bool plus = false;
  bool space = false;
  bool zero = false;
  bool alternate = false;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char letter = 0;
};

void require_number(const Conversion& conversion, const Value& value) {
  if (value.is_number()) return;
  fail(str_cat("%", std::string(1, conversion.letter), " format: a real number is required, not ",
               value.type_name()));
}

std::string integer_digits(const Conversion& conversion, const Value& value) {
  require_number(conversion, value);
  const bool is_decimal = std::string_view("diu").find(conversion.letter) != kNone;
  if (value.is_float() && !is_decimal) {
    fail(str_cat("%", std::string(1, conversion.letter),
                 " format: an integer is required, not float"));
  }
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (value.is_float() && !(value.number() > -kLimit && value.number() < kLimit)) {
    fail("integer overflow: values past 64 bits are not supported");
  }
  const std::int64_t integer =
      value.is_float() ? static_cast<std::int64_t>(value.number()) : value.integer();
  const std::uint64_t magnitude =
      integer < 0 ? 0 - static_cast<std::uint64_t>(integer) : static_cast<std::uint64_t>(integer);
  char buffer[32];
  const char* const format = is_decimal                 ? "%llu"
                             : conversion.letter == 'x' ? "%llx"
                             : conversion.letter == 'X' ? "%llX"
                                                        : "%llo";
  const int size =
      std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned long long>(magnitude));
  std::string digits(buffer, static_cast<std::size_t>(size));
  const std::size_t least = conversion.precision.value_or(0);
  if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
  if (conversion.alternate && !is_decimal) {
    digits.insert(0, std::string("0") + conversion.letter);
  }
  return integer < 0 ? "-" + digits : digits;
}

std::string float_digits(const Conversion& conversion, const Value& value) {
  require_number(conversion, value);
  const std::string format =
      str_cat("%", conversion.alternate ? "#" : "", ".*", std::string(1, conversion.letter));
  const int precision = static_cast<int>(conversion.precision.value_or(6));
  const int size = std::snprintf(nullptr, 0, format.c_str(), precision, value.number());
  std::string digits(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(digits.data(), digits.size(), format.c_str(), precision, value.number());
  digits.pop_back();
  return digits;
}

class PercentFormatter final {
 public:
  PercentFormatter(Budget& budget, const Text& format, const Value& values)
      : budget_(budget), format_(format), bytes_(format.str()), values_(values) {}

  Text run() {
    budget_.bytes(bytes_.size());
    std::size_t done = 0;
    while ((pos_ = bytes_.find('%', done)) != kNone) {
      out_.append(format_, done, pos_);
      ++pos_;
      convert();
      done = pos_;
    }
    out_.append(format_, done, bytes_.size());
    if (!used_mapping_ && next_ < num_values() && values_.dict() == nullptr) {
      fail("not all arguments converted during string formatting");
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Array* tuple() const {
    const Array* array = values_.array();
    return array != nullptr && array->is_tuple ? array : nullptr;
  }
  [[nodiscard]] std::size_t num_values() const {
    return tuple() != nullptr ? tuple()->items.size() : 1;
  }

  const Value& next_value() {
    if (next_ >= num_values()) fail("not enough arguments for format string");
    return tuple() != nullptr ? tuple()->items[next_++] : (++next_, values_);
  }

  char peek() {
    if (pos_ >= bytes_.size()) fail("incomplete format");
    return bytes_[pos_];
  }

  std::size_t number() {
    std::int64_t value = 0;
    if (peek() == '*') {
      ++pos_;
      const Value& given = next_value();
      if (!given.is_integer()) fail("* wants int");
      value = given.integer();
    } else {
      const auto result =
          std::from_chars(bytes_.data() + pos_, bytes_.data() + bytes_.size(), value);
      if (result.ec == std::errc::result_out_of_range) value = kMaxWidth + 1;
      pos_ = static_cast<std::size_t>(result.ptr - bytes_.data());
    }
    if (value < 0 || value > kMaxWidth) {
      fail(str_cat("a width or precision in a format is ", value, ", not 0 to ", kMaxWidth));
    }
    return static_cast<std::size_t>(value);
  }

  /// The value that %(name) names, past the closing parenthesis.
  std::optional<Value> named_value() {
    if (peek() != '(') return std::nullopt;
    const std::size_t end = bytes_.find(')', pos_);
    if (end == kNone) fail("incomplete format key");
    const Value key = Value::string(bytes_.substr(pos_ + 1, end - pos_ - 1), /*trusted=*/true);
    pos_ = end + 1;
    if (values_.dict() == nullptr) fail("format requires a mapping");
    used_mapping_ = true;
    for (const auto& [known, value] : values_.dict()->items) {
      if (equal(budget_, known, key)) return value;
    }
    fail(str_cat("KeyError: ", quoted(key.text()->str())));
  }

  void convert() {
    const std::optional<Value> named = named_value();
    Conversion conversion;
    for (bool is_flag = true; is_flag;) {
      const char c = peek();
      conversion.left |= c == '-';
      conversion.plus |= c == '+';
      conversion.space |= c == ' ';
      conversion.zero |= c == '0';
      conversion.alternate |= c == '#';
      is_flag = std::string_view("-+ 0#").find(c) != kNone;
      if (is_flag) ++pos_;
    }
    if (peek() == '*' || (peek() >= '0' && peek() <= '9')) conversion.width = number();
    if (peek() == '.') {
      ++pos_;
      const bool given = peek() == '*' || (peek() >= '0' && peek() <= '9');
      conversion.precision = given ? number() : 0;
    }
    while (std::string_view("hlL").find(peek()) != kNone)
      ++pos_;
    conversion.letter = peek();
    ++pos_;
    if (conversion.letter == '%') return out_.append("%", /*trusted=*/true);
    print(conversion, named ? *named : next_value());
  }

  void print(const Conversion& conversion, const Value& value) {
    switch (conversion.letter) {
      case 's':
        return print_text(conversion, to_text(budget_, value));
      case 'r':
      case 'a':
        return print_text(conversion, to_repr(budget_, value));
      case 'c':
        return print_character(conversion, value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return print_number(conversion, integer_digits(conversion, value));
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return print_number(conversion, float_digits(conversion, value));
      default:
        fail(str_cat("unsupported format character ", quoted({&conversion.letter, 1})));
    }
  }

  void pad(std::size_t count, char fill) {
    budget_.bytes(count);
    out_.append(std::string(count, fill), /*trusted=*/true);
  }

  void print_text(const Conversion& conversion, const Text& text) {
    const std::vector<std::size_t> offsets = character_offsets(budget_, text.str());
    const std::size_t all = offsets.size() - 1;
    const std::size_t size = std::min(conversion.precision.value_or(all), all);
    const std::size_t padding = conversion.width > size ? conversion.width - size : 0;
    budget_.bytes(text.size());
    if (!conversion.left) pad(padding, ' ');
    out_.append(text, 0, offsets[size]);
    if (conversion.left) pad(padding, ' ');
  }

  void print_character(const Conversion& conversion, const Value& value) {
    if (value.text() != nullptr && count_characters(value.text()->str()) == 1) {
      return print_text(conversion, *value.text());
    }
    const bool is_code = value.is_integer() && value.integer() >= 0 &&
                         value.integer() <= 0x10ffff &&
                         (value.integer() < 0xd800 || value.integer() > 0xdfff);
    if (!is_code) fail("%c requires int or char");
    std::string character;
    append_utf8(static_cast<char32_t>(value.integer()), character);
    print_text(conversion, Text(character, /*trusted=*/true));
  }

  void print_number(const Conversion& conversion, std::string digits) {
    std::string sign;
    if (digits[0] == '-') {
      sign = "-";
      digits.erase(0, 1);
    } else if (conversion.plus || conversion.space) {
      sign = conversion.plus ? "+" : " ";
    }
    const std::size_t size = sign.size() + digits.size();
    const std::size_t padding = conversion.width > size ? conversion.width - size : 0;
    const bool zeros = conversion.zero && !conversion.left;
    const bool has_base = conversion.alternate && digits.size() > 1 && digits[0] == '0' &&
                          std::string_view("xXo").find(digits[1]) != kNone;
    if (zeros && has_base) {
      sign += digits.substr(0, 2);
      digits.erase(0, 2);
    }
    budget_.bytes(size);
    if (!conversion.left && !zeros) pad(padding, ' ');
    out_.append(sign, /*trusted=*/true);
    if (zeros) pad(padding, '0');
    out_.append(digits, /*trusted=*/true);
    if (conversion.left) pad(padding, ' ');
  }

  Budget& budget_;
  const Text& format_;
  const std::string& bytes_;
  const Value& values_;
  std::size_t pos_ = 0;
  std::size_t next_ = 0;  ///< of the values
  bool used_mapping_ = false;
  Text out_;
};

}  // namespace

Text percent_format(Budget& budget, const Text& format, const Value& values) {
  return PercentFormatter(budget, format, values).run();
}

}  // namespace brigade::model::jinja
