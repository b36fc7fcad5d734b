// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "common/base/strings.h"
#include "common/model/jinja/format.h"
#include "common/model/jinja/string_format.h"
#include "common/model/jinja/strings.h"
#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

constexpr std::size_t kNone = std::string::npos;

/// `{...}` of str.format, without attributes and items of what it names.
class BraceFormatter final {
 public:
  BraceFormatter(Budget& budget, const Text& format, const Args& args)
      : budget_(budget), format_(format), bytes_(format.str()), args_(args) {}

  Text run() {
    budget_.bytes(bytes_.size());
    std::size_t pos = 0;
    while (pos < bytes_.size()) {
      const std::size_t brace = std::min(bytes_.find_first_of("{}", pos), bytes_.size());
      out_.append(format_, pos, brace);
      if (brace == bytes_.size()) break;
      const bool is_double = brace + 1 < bytes_.size() && bytes_[brace + 1] == bytes_[brace];
      if (is_double) {
        out_.append(format_, brace, brace + 1);
        pos = brace + 2;
        continue;
      }
      if (bytes_[brace] == '}') fail("Single '}' encountered in format string");
      const std::size_t end = bytes_.find_first_of("{}", brace + 1);
      if (end == kNone) fail("expected '}' before end of string");
      if (bytes_[end] == '{') fail("a format field within a format field is not supported");
      print_field(std::string_view(bytes_).substr(brace + 1, end - brace - 1));
      pos = end + 1;
    }
    return std::move(out_);
  }

 private:
  const Value& find(std::string_view name) {
    if (name.find_first_of(".[") != kNone) {
      fail("attributes and items in a format field are not supported");
    }
    std::size_t index = next_;
    const auto number = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index = number.ec == std::errc() && number.ptr == name.data() + name.size();
    if (!name.empty() && !is_index) {
      for (const auto& [known, value] : args_.named) {
        if (known == name) return value;
      }
      fail(str_cat("KeyError: ", quoted(name)));
    }
    if (name.empty() ? has_indices_ : next_ > 0) {
      fail("cannot switch between automatic and manual field numbering");
    }
    has_indices_ |= !name.empty();
    next_ += name.empty() ? 1 : 0;
    if (index >= args_.positional.size()) {
      fail(str_cat("Replacement index ", index, " out of range for positional args tuple"));
    }
    return args_.positional[index];
  }

  void print_field(std::string_view field) {
    const std::size_t colon = field.find(':');
    const std::string_view spec = colon == kNone ? "" : field.substr(colon + 1);
    std::string_view name = field.substr(0, colon);
    const std::size_t mark = name.find('!');
    const std::string_view how = mark == kNone ? "" : name.substr(mark + 1);
    if (mark != kNone && how != "r" && how != "s") fail("a conversion must be !r or !s");
    name = name.substr(0, mark);
    const Value& value = find(name);
    if (how.empty() && value.is_number() && !spec.empty()) return print_spec(spec, value);
    const Text text = how == "r" ? to_repr(budget_, value) : to_text(budget_, value);
    if (!spec.empty()) return print_spec(spec, Value(text));
    budget_.bytes(text.size());
    out_.append(text);
  }

  /// [[fill]align][sign][0][width][.precision][type]
  void print_spec(std::string_view spec, const Value& value) {
    constexpr std::string_view kAligns = "<>^";
    Text fill(" ", /*trusted=*/true);
    char align = value.is_number() ? '>' : '<';
    const std::size_t first = utf8_step(spec, 0).length;
    if (first < spec.size() && kAligns.find(spec[first]) != kNone) {
      fill = Text(spec.substr(0, first), /*trusted=*/true);
      align = spec[first];
      spec.remove_prefix(first + 1);
    } else if (kAligns.find(spec[0]) != kNone) {
      align = spec[0];
      spec.remove_prefix(1);
    }
    std::string percent = "%";
    while (!spec.empty() && std::string_view("+- #0").find(spec[0]) != kNone) {
      if (spec[0] != '-') percent += spec[0];
      spec.remove_prefix(1);
    }
    std::size_t width = 0;
    const auto number = std::from_chars(spec.data(), spec.data() + spec.size(), width);
    if (number.ec == std::errc::result_out_of_range || width > kMaxWidth) {
      fail(str_cat("a width in a format is more than ", kMaxWidth));
    }
    spec.remove_prefix(static_cast<std::size_t>(number.ptr - spec.data()));
    const bool pads_zeros = percent.find('0') != kNone;
    if (pads_zeros) percent += std::to_string(width);
    while (!spec.empty() && (spec[0] == '.' || (spec[0] >= '0' && spec[0] <= '9'))) {
      percent += spec[0];
      spec.remove_prefix(1);
    }
    if (spec.size() > 1) fail("Invalid format specifier");
    percent += letter_of(spec, value, percent.find('.') != kNone);
    const Text text = percent_format(budget_, Text(percent, true), Value::tuple({value}));
    const auto size = static_cast<std::int64_t>(width);
    if (align == '^') {
      // Where it does not come out even, the right side gets more.
      const auto used = static_cast<std::int64_t>(count_characters(text.str()));
      const std::int64_t left = std::max<std::int64_t>(0, size - used) / 2;
      const Text half = justify(budget_, text, used + left, fill, Justify::kRight);
      out_.append(justify(budget_, half, size, fill, Justify::kLeft));
    } else {
      out_.append(
          justify(budget_, text, size, fill, align == '<' ? Justify::kLeft : Justify::kRight));
    }
  }

  static char letter_of(std::string_view type, const Value& value, bool has_precision) {
    const std::string_view allowed = !value.is_number() ? "s"
                                     : value.is_float() ? "eEfFgG"
                                                        : "dxXoeEfFgG";
    if (!type.empty() && allowed.find(type[0]) == kNone) {
      fail(str_cat("Unknown format code ", quoted(type), " for object of type '", value.type_name(),
                   "'"));
    }
    if (!type.empty()) return type[0];
    if (!value.is_float()) return value.is_number() ? 'd' : 's';
    return has_precision ? 'g' : 's';
  }

  Budget& budget_;
  const Text& format_;
  const std::string& bytes_;
  const Args& args_;
  std::size_t next_ = 0;  ///< of the positional ones
  bool has_indices_ = false;
  Text out_;
};

}  // namespace

Text brace_format(Budget& budget, const Text& format, const Args& args) {
  return BraceFormatter(budget, format, args).run();
}

}  // namespace brigade::model::jinja
