// SPDX-License-Identifier: Apache-2.0
// Filters of lists and dicts. Where Jinja gives a generator, this gives the list of what it would
// yield.
#include <algorithm>

#include "common/model/jinja/filters.h"
#include "common/model/jinja/format.h"
#include "common/model/jinja/nesting.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/strings.h"
#include "common/model/jinja/table.h"

namespace brigade::model::jinja {
namespace {

/// What an item is compared by: its attribute, if one is given, in small letters unless case
/// counts.
Value sort_key(Context& context, const Value& item, const Value* attribute, bool case_sensitive) {
  Value key =
      attribute == nullptr || attribute->is_none() ? item : get_path(context, item, *attribute);
  if (case_sensitive || key.text() == nullptr) return key;
  return map_case(context.budget(), *key.text(), CaseRule::kLower);
}

/// Items with their keys, in order of the keys, equal ones as they were.
std::vector<Value> sorted(Context& context, std::vector<Value> items, const Value* attribute,
                          bool case_sensitive, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  context.budget().bytes(items.size() * 2 * sizeof(Value));
  for (Value& item : items) {
    Value key = sort_key(context, item, attribute, case_sensitive);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(context.budget(), b.first, a.first)
                   : less(context.budget(), a.first, b.first);
  });
  std::vector<Value> out;
  for (auto& [key, item] : keyed)
    out.push_back(std::move(item));
  return out;
}

std::vector<Value> pairs_of(Context& context, const Value& value) {
  std::vector<Value> pairs;
  if (value.is_undefined()) return pairs;
  if (value.dict() == nullptr) fail("Can only get item pairs from a mapping.");
  context.budget().bytes(value.dict()->items.size() * 4 * sizeof(Value));
  for (const auto& [key, item] : value.dict()->items)
    pairs.push_back(Value::tuple({key, item}));
  return pairs;
}

Value dictsort_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("dictsort", args, {"case_sensitive", "by", "reverse"});
  const std::string by = bound.text(1) == nullptr ? "key" : bound.text(1)->str();
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  const Value position(std::int64_t{by == "key" ? 0 : 1});
  return Value::list(sorted(context, pairs_of(context, self), &position, bound.truthy(0, false),
                            bound.truthy(2, false)));
}

Value first_filter(Context& context, const Value& self, const Args& args) {
  Bound("first", args, {});
  const std::vector<Value> items = iterate(context.budget(), self);
  return items.empty() ? Value::undefined("the first item of an empty sequence") : items.front();
}

Value items_filter(Context& context, const Value& self, const Args& args) {
  Bound("items", args, {});
  return Value::list(pairs_of(context, self));
}

Value join_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("join", args, {"d", "attribute"});
  const Text separator = bound[0] == nullptr ? Text() : filter_text(context, *bound[0]);
  Text out;
  bool first = true;
  for (const Value& item : iterate(context.budget(), self)) {
    const Text text = filter_text(context, bound[1] == nullptr || bound[1]->is_none()
                                               ? item
                                               : get_path(context, item, *bound[1]));
    context.budget().bytes(text.size() + separator.size());
    if (!std::exchange(first, false)) out.append(separator);
    out.append(text);
  }
  return out;
}

Value last_filter(Context& context, const Value& self, const Args& args) {
  Bound("last", args, {});
  const std::vector<Value> items = iterate(context.budget(), self);
  return items.empty() ? Value::undefined("the last item of an empty sequence") : items.back();
}

Value length_filter(Context& context, const Value& self, const Args& args) {
  Bound("length", args, {});
  if (self.is_undefined()) return std::int64_t{0};
  if (const Text* text = self.text()) {
    context.budget().step(text->size() / 16);
    return static_cast<std::int64_t>(count_characters(text->str()));
  }
  if (const Array* array = self.array()) return static_cast<std::int64_t>(array->items.size());
  if (const Dict* dict = self.dict()) return static_cast<std::int64_t>(dict->items.size());
  fail(str_cat("object of type '", self.type_name(), "' has no len()"));
}

Value list_filter(Context& context, const Value& self, const Args& args) {
  Bound("list", args, {});
  return Value::list(iterate(context.budget(), self));
}

Args without_first(const Args& args) {
  Args rest{.positional = {}, .named = args.named};
  if (!args.positional.empty()) {
    rest.positional.assign(args.positional.begin() + 1, args.positional.end());
  }
  return rest;
}

const std::string& name_argument(const Args& args, std::string_view filter) {
  if (args.positional.empty() || args.positional[0].text() == nullptr) {
    fail(str_cat(filter, " needs a name as its first argument"));
  }
  return args.positional[0].text()->str();
}

Value map_filter(Context& context, const Value& self, const Args& args) {
  // map('map', 'map', ...) goes down a level for each, and a character of a string is again a
  // string.
  const Nesting nesting(context.depth(), kMaxEvalDepth);
  if (!self.truthy()) return Value::list({});  // None too, as in Jinja
  std::vector<Value> items = iterate(context.budget(), self);
  if (args.positional.empty()) {
    const Bound bound("map", args, {"attribute", "default"}, 1);
    for (Value& item : items) {
      Value value = get_path(context, item, *bound[0]);
      item = value.is_undefined() && bound[1] != nullptr ? *bound[1] : std::move(value);
    }
    return Value::list(std::move(items));
  }
  const std::string& name = name_argument(args, "map");
  const Function filter = find_filter(name);
  if (filter == nullptr) fail(str_cat("unknown filter ", quoted(name)));
  const Args rest = without_first(args);
  for (Value& item : items) {
    context.budget().step();
    item = filter(context, item, rest);
  }
  return Value::list(std::move(items));
}

template <bool want_max>
Value extreme_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound(want_max ? "max" : "min", args, {"case_sensitive", "attribute"});
  const std::vector<Value> items =
      sorted(context, iterate(context.budget(), self), bound[1], bound.truthy(0, false), want_max);
  return items.empty() ? Value::undefined("an item of an empty sequence") : items.front();
}

Value reverse_filter(Context& context, const Value& self, const Args& args) {
  Bound("reverse", args, {});
  std::vector<Value> items = iterate(context.budget(), self);
  std::reverse(items.begin(), items.end());
  if (self.text() == nullptr) return Value::list(std::move(items));
  Text out;
  for (const Value& character : items)
    out.append(*character.text());
  return out;
}

/// select, reject (want: which outcome stays) and their forms that test an attribute.
template <bool want, bool by_attribute>
Value select_filter(Context& context, const Value& self, const Args& args) {
  Args rest = args;
  Value attribute;
  if (by_attribute) {
    if (args.positional.empty()) fail("Missing parameter for attribute name");
    attribute = args.positional[0];
    rest = without_first(args);
  }
  Test test = nullptr;
  if (!rest.positional.empty()) {
    const std::string& name = name_argument(rest, "select");
    test = find_test(name);
    if (test == nullptr) fail(str_cat("unknown test ", quoted(name)));
    rest = without_first(rest);
  }
  std::vector<Value> kept;
  if (!self.truthy()) return Value::list({});
  for (Value& item : iterate(context.budget(), self)) {
    context.budget().step();
    const Value value = by_attribute ? get_path(context, item, attribute) : item;
    const bool outcome = test == nullptr ? value.truthy() : test(context, value, rest);
    if (outcome == want) kept.push_back(std::move(item));
  }
  return Value::list(std::move(kept));
}

Value sort_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("sort", args, {"reverse", "case_sensitive", "attribute"});
  return Value::list(sorted(context, iterate(context.budget(), self), bound[2],
                            bound.truthy(1, false), bound.truthy(0, false)));
}

Value sum_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("sum", args, {"attribute", "start"});
  Value total = bound[1] == nullptr ? Value(std::int64_t{0}) : *bound[1];
  for (const Value& item : iterate(context.budget(), self)) {
    const bool whole = bound[0] == nullptr || bound[0]->is_none();
    total = apply(context.budget(), BinaryOp::kAdd, total,
                  whole ? item : get_path(context, item, *bound[0]));
  }
  return total;
}

Value unique_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("unique", args, {"case_sensitive", "attribute"});
  std::vector<Value> keys;
  std::vector<Value> kept;
  for (Value& item : iterate(context.budget(), self)) {
    Value key = sort_key(context, item, bound[1], bound.truthy(0, false));
    const bool known = std::any_of(keys.begin(), keys.end(), [&](const Value& old) {
      return equal(context.budget(), old, key);
    });
    if (known) continue;
    keys.push_back(std::move(key));
    kept.push_back(std::move(item));
  }
  return Value::list(std::move(kept));
}

constexpr Entry<Function> kFilters[] = {
    {"count", length_filter},
    {"dictsort", dictsort_filter},
    {"first", first_filter},
    {"items", items_filter},
    {"join", join_filter},
    {"last", last_filter},
    {"length", length_filter},
    {"list", list_filter},
    {"map", map_filter},
    {"max", extreme_filter<true>},
    {"min", extreme_filter<false>},
    {"reject", select_filter<false, false>},
    {"rejectattr", select_filter<false, true>},
    {"reverse", reverse_filter},
    {"select", select_filter<true, false>},
    {"selectattr", select_filter<true, true>},
    {"sort", sort_filter},
    {"sum", sum_filter},
    {"unique", unique_filter},
};
static_assert(is_sorted_table(kFilters));

}  // namespace

Function find_sequence_filter(std::string_view name) {
  return find_entry(kFilters, name);
}

}  // namespace brigade::model::jinja
