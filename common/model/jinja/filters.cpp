// SPDX-License-Identifier: Apache-2.0
// Filters of single values: strings, numbers, JSON.
#include "common/model/jinja/filters.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "common/model/jinja/format.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/strings.h"
#include "common/model/jinja/table.h"

namespace brigade::model::jinja {
namespace {

std::optional<double> parse_float(std::string_view text) {
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && is_space(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> to_integer(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(value > -kLimit && value < kLimit)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Value abs_filter(Context&, const Value& self, const Args& args) {
  Bound("abs", args, {});
  if (!self.is_number()) fail(str_cat("bad operand type for abs(): '", self.type_name(), "'"));
  if (self.is_float()) return std::fabs(self.number());
  return self.integer() < 0 ? negate(self) : Value(self.integer());
}

template <CaseRule rule>
Value case_filter(Context& context, const Value& self, const Args& args) {
  Bound("the filter", args, {});
  return map_case(context.budget(), filter_text(context, self), rule);
}

Value default_filter(Context&, const Value& self, const Args& args) {
  const Bound bound("default", args, {"default_value", "boolean"});
  const bool replaced = self.is_undefined() || (bound.truthy(1, false) && !self.truthy());
  if (!replaced) return self;
  return bound[0] == nullptr ? Value(Text()) : *bound[0];
}

Value escape_filter(Context& context, const Value& self, const Args& args) {
  Bound("escape", args, {});
  constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
  Text text = filter_text(context, self);
  for (const auto& [from, to] : kEscapes) {
    text = replace(context.budget(), text, Text(from, true), Text(to, true), kNoLimit);
  }
  return text;
}

Value float_filter(Context&, const Value& self, const Args& args) {
  const Bound bound("float", args, {"default"});
  if (self.is_number()) return self.number();
  const auto value = self.text() != nullptr ? parse_float(self.text()->str()) : std::nullopt;
  if (value) return *value;
  return bound[0] == nullptr ? Value(0.0) : *bound[0];
}

Value indent_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("indent", args, {"width", "first", "blank"});
  Budget& budget = context.budget();
  Text indent;
  if (bound[0] != nullptr && bound[0]->text() != nullptr) {
    indent = *bound[0]->text();
  } else {
    const auto width = static_cast<std::size_t>(std::max<std::int64_t>(0, bound.integer(0, 4)));
    budget.bytes(width);
    indent.append(std::string(width, ' '), /*trusted=*/true);
  }
  Text source = filter_text(context, self);
  source.append("\n", /*trusted=*/true);  // as Jinja does: a newline at the end counts as a line
  const std::vector<Text> lines = split_lines(budget, source, /*keep_ends=*/false);
  Text out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool indented =
        i == 0 ? bound.truthy(1, false) : bound.truthy(2, false) || !lines[i].empty();
    budget.bytes(lines[i].size() + indent.size() + 1);
    if (i > 0) out.append("\n", /*trusted=*/true);
    if (indented) out.append(indent);
    out.append(lines[i]);
  }
  return out;
}

Value int_filter(Context&, const Value& self, const Args& args) {
  const Bound bound("int", args, {"default", "base"});
  std::optional<std::int64_t> value;
  if (self.is_integer() || self.is_bool()) return self.integer();
  if (self.is_float()) value = to_integer(self.number());
  if (const Text* text = self.text()) {
    std::string_view digits = text->str();
    while (!digits.empty() && is_space(static_cast<unsigned char>(digits.front())))
      digits.remove_prefix(1);
    while (!digits.empty() && is_space(static_cast<unsigned char>(digits.back())))
      digits.remove_suffix(1);
    if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
    const std::int64_t base = bound.integer(1, 10);
    if (base < 2 || base > 36) fail("int() base must be >= 2 and <= 36");
    std::int64_t parsed = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), parsed,
                                        static_cast<int>(base));
    if (result.ec == std::errc() && result.ptr == digits.data() + digits.size()) return parsed;
    if (const auto number = parse_float(text->str())) value = to_integer(*number);
  }
  if (value) return *value;
  return bound[0] == nullptr ? Value(std::int64_t{0}) : *bound[0];
}

Value replace_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("replace", args, {"old", "new", "count"}, 2);
  return replace(context.budget(), filter_text(context, self), filter_text(context, *bound[0]),
                 filter_text(context, *bound[1]), bound.integer(2, kNoLimit));
}

Value round_filter(Context&, const Value& self, const Args& args) {
  const Bound bound("round", args, {"precision", "method"});
  if (!self.is_number()) fail(str_cat("type ", self.type_name(), " cannot be rounded"));
  const std::string method = bound.text(1) == nullptr ? "common" : bound.text(1)->str();
  const double scale = std::pow(10.0, static_cast<double>(bound.integer(0, 0)));
  const double scaled = self.number() * scale;
  if (method == "common") return std::nearbyint(scaled) / scale;  // half to even, as Python
  if (method == "ceil") return std::ceil(scaled) / scale;
  if (method == "floor") return std::floor(scaled) / scale;
  fail("method must be common, ceil or floor");
}

/// Markup means nothing without autoescape.
Value safe_filter(Context& context, const Value& self, const Args& args) {
  Bound("safe", args, {});
  return filter_text(context, self);
}

Value string_filter(Context& context, const Value& self, const Args& args) {
  Bound("string", args, {});
  return self.text() != nullptr ? self : Value(filter_text(context, self));
}

Value tojson_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.truthy(0, false);
  style.sort_keys = bound.truthy(3, false);
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    style.indent = bound.integer(1, 0);
    style.item_separator = ",";
  }
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    const Array* separators = bound[2]->array();
    if (separators == nullptr || separators->items.size() != 2 ||
        separators->items[0].text() == nullptr || separators->items[1].text() == nullptr) {
      fail("tojson: separators must be two strings");
    }
    style.item_separator = separators->items[0].text()->str();
    style.key_separator = separators->items[1].text()->str();
    if (style.item_separator.size() + style.key_separator.size() > 16) {
      fail("tojson: separators longer than 16 bytes");
    }
  }
  return to_json(context.budget(), self, style);
}

Value trim_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("trim", args, {"chars"});
  return strip(context.budget(), filter_text(context, self), bound.text(0), /*left=*/true,
               /*right=*/true);
}

constexpr Entry<Function> kFilters[] = {
    {"abs", abs_filter},
    {"capitalize", case_filter<CaseRule::kCapitalize>},
    {"d", default_filter},
    {"default", default_filter},
    {"e", escape_filter},
    {"escape", escape_filter},
    {"float", float_filter},
    {"forceescape", escape_filter},
    {"indent", indent_filter},
    {"int", int_filter},
    {"lower", case_filter<CaseRule::kLower>},
    {"replace", replace_filter},
    {"round", round_filter},
    {"safe", safe_filter},
    {"string", string_filter},
    {"title", case_filter<CaseRule::kTitleFilter>},
    {"tojson", tojson_filter},
    {"trim", trim_filter},
    {"upper", case_filter<CaseRule::kUpper>},
};
static_assert(is_sorted_table(kFilters));

}  // namespace

Function find_text_filter(std::string_view name) {
  return find_entry(kFilters, name);
}

Function find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_sequence_filter, find_layout_filter}) {
    if (const Function filter = find(name)) return filter;
  }
  return nullptr;
}

}  // namespace brigade::model::jinja
