// SPDX-License-Identifier: Apache-2.0
// Methods of strings, lists, tuples, dicts and the loop object. None changes its object (Jinja's
// immutable sandbox).
#include <algorithm>

#include "common/model/jinja/builtins.h"
#include "common/model/jinja/methods.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/strings.h"
#include "common/model/jinja/table.h"

namespace brigade::model::jinja {
namespace {

constexpr std::size_t kNone = std::string::npos;

template <CaseRule rule>
Value case_method(Context& context, const Value& self, const Args& args) {
  Bound("the method", args, {});
  return map_case(context.budget(), *self.text(), rule);
}

template <bool left, bool right>
Value strip_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("strip", args, {"chars"});
  return strip(context.budget(), *self.text(), bound.text(0), left, right);
}

template <bool from_right>
Value split_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("split", args, {"sep", "maxsplit"});
  const std::int64_t max_splits = bound.integer(1, kNoLimit);
  return Value::list(split(context.budget(), *self.text(), bound.text(0),
                           max_splits < 0 ? kNoLimit : max_splits, from_right));
}

Value splitlines_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("splitlines", args, {"keepends"});
  std::vector<Value> lines;
  for (Text& line : split_lines(context.budget(), *self.text(), bound.truthy(0, false))) {
    lines.emplace_back(std::move(line));
  }
  return Value::list(std::move(lines));
}

bool has_affix(std::string_view text, std::string_view affix, bool at_start) {
  return at_start ? text.starts_with(affix) : text.ends_with(affix);
}

/// startswith and endswith: one string or a tuple of them.
template <bool at_start>
Value affix_method(Context& context, const Value& self, const Args& args) {
  const Bound bound(at_start ? "startswith" : "endswith", args, {"affix"}, 1);
  const std::string& text = self.text()->str();
  const Array* several = bound[0]->array();
  if (several == nullptr || !several->is_tuple) {
    return Value(has_affix(text, bound.string(0).str(), at_start));
  }
  context.budget().step(several->items.size());
  return Value(std::any_of(several->items.begin(), several->items.end(), [&](const Value& affix) {
    return affix.text() != nullptr && has_affix(text, affix.text()->str(), at_start);
  }));
}

template <bool at_start>
Value remove_affix_method(Context& context, const Value& self, const Args& args) {
  const Bound bound(at_start ? "removeprefix" : "removesuffix", args, {"affix"}, 1);
  const Text& text = *self.text();
  const std::string& affix = bound.string(0).str();
  context.budget().bytes(text.size());
  if (!has_affix(text.str(), affix, at_start)) return self;
  return at_start ? text.slice(affix.size(), text.size())
                  : text.slice(0, text.size() - affix.size());
}

Value replace_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("replace", args, {"old", "new", "count"}, 2);
  const std::int64_t count = bound.integer(2, kNoLimit);
  return replace(context.budget(), *self.text(), bound.string(0), bound.string(1),
                 count < 0 ? kNoLimit : count);
}

Value count_method_of_string(Context& context, const Value& self, const Args& args) {
  const Bound bound("count", args, {"sub"}, 1);
  const std::string& text = self.text()->str();
  const std::string& sub = bound.string(0).str();
  context.budget().step(text.size() / 8);
  if (sub.empty()) return static_cast<std::int64_t>(count_characters(text) + 1);
  std::int64_t count = 0;
  for (std::size_t at = find_bytes(text, sub, 0); at != kNone;
       at = find_bytes(text, sub, at + sub.size())) {
    context.budget().step();
    ++count;
  }
  return count;
}

Value join_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("join", args, {"iterable"}, 1);
  Text out;
  bool first = true;
  for (const Value& item : iterate(context.budget(), *bound[0])) {
    if (item.text() == nullptr) {
      fail(str_cat("join: expected str instance, ", item.type_name(), " found"));
    }
    context.budget().bytes(item.text()->size() + self.text()->size());
    if (!std::exchange(first, false)) out.append(*self.text());
    out.append(*item.text());
  }
  return out;
}

/// isdigit, isalpha and their like, for ASCII; other characters count as letters.
template <bool digits, bool letters, bool spaces>
Value class_method(Context& context, const Value& self, const Args& args) {
  Bound("the method", args, {});
  const std::string& text = self.text()->str();
  context.budget().step(text.size() / 8);
  return Value(!text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    return (digits && byte >= '0' && byte <= '9') || (letters && (letter || byte >= 0x80)) ||
           (spaces && byte < 0x80 && is_space(byte));
  }));
}

Value get_method(Context& context, const Value& self, const Args& args) {
  const Bound bound("get", args, {"key", "default"}, 1);
  for (const auto& [key, value] : self.dict()->items) {
    if (equal(context.budget(), key, *bound[0])) return value;
  }
  return bound[1] == nullptr ? Value(None()) : *bound[1];
}

Value items_method(Context& context, const Value& self, const Args& args) {
  Bound("items", args, {});
  std::vector<Value> pairs;
  context.budget().bytes(self.dict()->items.size() * 4 * sizeof(Value));
  for (const auto& [key, value] : self.dict()->items)
    pairs.push_back(Value::tuple({key, value}));
  return Value::list(std::move(pairs));
}

Value keys_method(Context& context, const Value& self, const Args& args) {
  Bound("keys", args, {});
  return Value::list(iterate(context.budget(), self));
}

Value values_method(Context& context, const Value& self, const Args& args) {
  Bound("values", args, {});
  std::vector<Value> values;
  context.budget().bytes(self.dict()->items.size() * sizeof(Value));
  for (const auto& [key, value] : self.dict()->items)
    values.push_back(value);
  return Value::list(std::move(values));
}

Value count_method_of_list(Context& context, const Value& self, const Args& args) {
  const Bound bound("count", args, {"value"}, 1);
  const std::vector<Value>& items = self.array()->items;
  return static_cast<std::int64_t>(
      std::count_if(items.begin(), items.end(),
                    [&](const Value& item) { return equal(context.budget(), item, *bound[0]); }));
}

Value index_method_of_list(Context& context, const Value& self, const Args& args) {
  const Bound bound("index", args, {"value"}, 1);
  const std::vector<Value>& items = self.array()->items;
  const auto it = std::find_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(context.budget(), item, *bound[0]);
  });
  if (it == items.end()) fail("index: the value is not in the list");
  return static_cast<std::int64_t>(it - items.begin());
}

Value cycle_method(Context&, const Value& self, const Args& args) {
  if (args.positional.empty()) fail("no items for cycling given");
  return args.positional[self.loop()->index0 % args.positional.size()];
}

/// Whether the values differ from those of the call before.
Value changed_method(Context& context, const Value& self, const Args& args) {
  if (!args.named.empty()) fail("changed() takes no keyword arguments");
  const Value values = Value::tuple(args.positional);
  Value& last = context.last_changed(*self.loop());
  const bool same = !last.is_undefined() && equal(context.budget(), last, values);
  context.budget().bytes(args.positional.size() * sizeof(Value));
  last = values;
  return Value(!same);
}

constexpr Entry<Function> kStringMethods[] = {
    {"capitalize", case_method<CaseRule::kCapitalize>},
    {"count", count_method_of_string},
    {"endswith", affix_method<false>},
    {"isalnum", class_method<true, true, false>},
    {"isalpha", class_method<false, true, false>},
    {"isdecimal", class_method<true, false, false>},
    {"isdigit", class_method<true, false, false>},
    {"isnumeric", class_method<true, false, false>},
    {"isspace", class_method<false, false, true>},
    {"join", join_method},
    {"lower", case_method<CaseRule::kLower>},
    {"lstrip", strip_method<true, false>},
    {"removeprefix", remove_affix_method<true>},
    {"removesuffix", remove_affix_method<false>},
    {"replace", replace_method},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<false, true>},
    {"split", split_method<false>},
    {"splitlines", splitlines_method},
    {"startswith", affix_method<true>},
    {"strip", strip_method<true, true>},
    {"title", case_method<CaseRule::kTitle>},
    {"upper", case_method<CaseRule::kUpper>},
};
static_assert(is_sorted_table(kStringMethods));

constexpr Entry<Function> kDictMethods[] = {
    {"get", get_method},
    {"items", items_method},
    {"keys", keys_method},
    {"values", values_method},
};
static_assert(is_sorted_table(kDictMethods));

constexpr Entry<Function> kListMethods[] = {
    {"count", count_method_of_list},
    {"index", index_method_of_list},
};
static_assert(is_sorted_table(kListMethods));

}  // namespace

Function find_method(const Value& object, std::string_view name) {
  if (object.text() != nullptr) {
    const Function method = find_entry(kStringMethods, name);
    return method != nullptr ? method : find_layout_method(name);
  }
  if (object.dict() != nullptr) return find_entry(kDictMethods, name);
  if (object.array() != nullptr) return find_entry(kListMethods, name);
  if (object.loop() == nullptr) return nullptr;
  return name == "cycle" ? cycle_method : name == "changed" ? changed_method : nullptr;
}

}  // namespace brigade::model::jinja
