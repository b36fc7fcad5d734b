// SPDX-License-Identifier: Apache-2.0
// Methods of strings that lay out, search from the right, and look at letters.
#include <algorithm>

#include "common/model/jinja/builtins.h"
#include "common/model/jinja/methods.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/string_format.h"
#include "common/model/jinja/strings.h"
#include "common/model/jinja/table.h"
#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

template <Justify how>
Value justify_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("the method", args, {"width", "fillchar"}, 1);
  const Text fill = bound.text(1) == nullptr ? Text(" ", true) : *bound.text(1);
  if (count_characters(fill.str()) != 1) {
    fail("the fill character must be exactly one character long");
  }
  return justify(context.budget(), *self.text(), bound.integer(0, 0), fill, how);
}

Value zfill_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("zfill", args, {"width"}, 1);
  const Text& text = *self.text();
  const bool has_sign = text.str().starts_with('-') || text.str().starts_with('+');
  const std::size_t sign = has_sign ? 1 : 0;
  Text out = text.slice(0, sign);
  out.append(justify(context.budget(), text.slice(sign, text.size()),
                     bound.integer(0, 0) - static_cast<std::int64_t>(sign), Text("0", true),
                     Justify::kRight));
  return out;
}

/// (before, separator, after); where it is not there, all of it stands on the side that was not
/// searched.
template <bool from_right>
Value partition_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("partition", args, {"sep"}, 1);
  const Text& text = *self.text();
  const Text& separator = bound.string(0);
  if (separator.empty()) fail("empty separator");
  const std::vector<Value> parts = split(context.budget(), text, &separator, 1, from_right);
  if (parts.size() == 2) return Value::tuple({parts[0], Value(separator), parts[1]});
  const Value empty{Text()};
  return from_right ? Value::tuple({empty, empty, self}) : Value::tuple({self, empty, empty});
}

std::int64_t find_in(Context& context, const Value& self, const Args& args, bool from_right) {
  const Bound bound("find", args, {"sub"}, 1);
  const Text& text = *self.text();
  const Text& sub = bound.string(0);
  std::size_t found = text.size();
  if (!from_right || !sub.empty()) {
    const std::vector<Value> parts = sub.empty()
                                         ? std::vector<Value>{Value(Text()), self}
                                         : split(context.budget(), text, &sub, 1, from_right);
    if (parts.size() == 1) return -1;
    found = parts[0].text()->size();
  }
  context.budget().step(text.size() / 8);
  return static_cast<std::int64_t>(count_characters(std::string_view(text.str()).substr(0, found)));
}

template <bool from_right, bool must_find>
Value find_method_of_string(Context& context, const Value& self, const Args& args) {
  const std::int64_t found = find_in(context, self, args, from_right);
  if (must_find && found < 0) fail("substring not found");
  return found;
}

Value swapcase_method(Context& context, const Value& self, const Args& args) {
  Bound("swapcase", args, {});
  const Text& text = *self.text();
  context.budget().bytes(text.size() * 2);
  Text out;
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Step step = utf8_step(text.str(), pos);
    std::string swapped = text.str().substr(pos, step.length);
    if (step.kind == Utf8Step::Kind::kCharacter) {
      const char32_t c = step.code_point;
      swapped.clear();
      append_utf8(to_lower(c) != c ? to_lower(c) : to_upper(c), swapped);
    }
    out.append(swapped, text.trusted_at(pos));
    pos += step.length;
  }
  return out;
}

template <CaseRule same, CaseRule other>
Value has_case_method(Context& context, const Value& self, const Args& args) {
  Bound("the method", args, {});
  const Text& text = *self.text();
  return Value(map_case(context.budget(), text, same).str() == text.str() &&
               map_case(context.budget(), text, other).str() != text.str());
}

Value casefold_method(Context& context, const Value& self, const Args& args) {
  Bound("casefold", args, {});
  return map_case(context.budget(), *self.text(), CaseRule::kLower);
}

Value format_method(Context& context, const Value& self, const Args& args) {
  return brace_format(context.budget(), *self.text(), args);
}

Value isascii_method(Context& context, const Value& self, const Args& args) {
  Bound("isascii", args, {});
  const std::string& text = self.text()->str();
  context.budget().step(text.size() / 8);
  return Value(std::all_of(text.begin(), text.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

constexpr Entry<Function> kMethods[] = {
    {"casefold", casefold_method},
    {"center", justify_method<Justify::kCenter>},
    {"find", find_method_of_string<false, false>},
    {"format", format_method},
    {"index", find_method_of_string<false, true>},
    {"isascii", isascii_method},
    {"islower", has_case_method<CaseRule::kLower, CaseRule::kUpper>},
    {"isupper", has_case_method<CaseRule::kUpper, CaseRule::kLower>},
    {"ljust", justify_method<Justify::kLeft>},
    {"partition", partition_method<false>},
    {"rfind", find_method_of_string<true, false>},
    {"rindex", find_method_of_string<true, true>},
    {"rjust", justify_method<Justify::kRight>},
    {"rpartition", partition_method<true>},
    {"swapcase", swapcase_method},
    {"zfill", zfill_method},
};
static_assert(is_sorted_table(kMethods));

}  // namespace

Function find_layout_method(std::string_view name) {
  return find_entry(kMethods, name);
}

}  // namespace brigade::model::jinja
