// SPDX-License-Identifier: Apache-2.0
// Global functions: Jinja's own, and the two that HF's renderer adds.
#include <algorithm>

#include "common/model/jinja/builtins.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/table.h"
#include "common/model/jinja/time_format.h"

namespace brigade::model::jinja {
namespace {

/// The items of dict(...) and namespace(...): those of a mapping, then the named ones.
std::vector<std::pair<Value, Value>> named_items(Context& context, std::string_view function,
                                                 const Args& args) {
  std::vector<std::pair<Value, Value>> items;
  if (args.positional.size() > 1) fail(str_cat(function, " takes at most one mapping"));
  if (!args.positional.empty()) {
    if (args.positional[0].dict() == nullptr) fail(str_cat(function, " needs a mapping"));
    items = args.positional[0].dict()->items;
  }
  context.budget().bytes((items.size() + args.named.size()) * 2 * sizeof(Value));
  for (const auto& [name, value] : args.named) {
    const Value key = Value::string(name, /*trusted=*/true);
    const auto it = std::find_if(items.begin(), items.end(), [&](const auto& item) {
      return equal(context.budget(), item.first, key);
    });
    if (it == items.end()) {
      items.emplace_back(key, value);
    } else {
      it->second = value;
    }
  }
  return items;
}

Value dict_function(Context& context, const Value&, const Args& args) {
  return Value::dict(named_items(context, "dict", args));
}

/// Nothing on the first call, the separator on all others.
Value joiner_call(Context&, const Value& self, const Args& args) {
  Bound("the joiner", args, {});
  auto& [name, used] = self.name_space()->attributes[1];
  if (used.truthy()) return self.name_space()->attributes[0].second;
  used = Value(true);
  return Value(Text());
}

Value joiner_function(Context& context, const Value&, const Args& args) {
  const Bound bound("joiner", args, {"sep"});
  Namespace* const state = context.new_namespace();
  context.budget().bytes(sizeof(Namespace) + 2 * sizeof(Value));
  const Value separator =
      bound.text(0) == nullptr ? Value(Text(", ", true)) : Value(*bound.text(0));
  state->attributes = {{"sep", separator}, {"used", Value(false)}};
  return Value(std::make_shared<const Callable>(
      Callable{BoundFunction{"joiner", joiner_call, Value(state)}, 1}));
}

Value namespace_function(Context& context, const Value&, const Args& args) {
  Namespace* const out = context.new_namespace();
  for (const auto& [key, value] : named_items(context, "namespace", args)) {
    if (key.text() == nullptr) fail("namespace: keys must be strings");
    context.budget().bytes(key.text()->size() + sizeof(Value));
    out->attributes.emplace_back(key.text()->str(), value);
  }
  return out;
}

Value raise_exception_function(Context& context, const Value&, const Args& args) {
  const Bound bound("raise_exception", args, {"message"}, 1);
  throw Error{invalid_argument(filter_text(context, *bound[0]).str()), /*is_own=*/true};
}

Value range_function(Context& context, const Value&, const Args& args) {
  const Bound bound("range", args, {"start", "stop", "step"}, 1);
  const bool one = bound[1] == nullptr;
  const std::int64_t start = one ? 0 : bound.integer(0, 0);
  const std::int64_t stop = bound.integer(one ? 0 : 1, 0);
  const std::int64_t step = bound.integer(2, 1);
  if (step == 0) fail("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() == kMaxRange) {
      throw Error{resource_exhausted(str_cat("Range too big: more than ", kMaxRange, " items"))};
    }
    context.budget().bytes(sizeof(Value));
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value::list(std::move(items));
}

Value strftime_now_function(Context& context, const Value&, const Args& args) {
  const Bound bound("strftime_now", args, {"format"}, 1);
  const std::string& format = bound.string(0).str();
  context.budget().bytes(format.size() * 10);
  return Value::string(format_time(context.now_s(), format), /*trusted=*/true);
}

constexpr Entry<Function> kFunctions[] = {
    {"dict", dict_function},           {"joiner", joiner_function},
    {"namespace", namespace_function}, {"raise_exception", raise_exception_function},
    {"range", range_function},         {"strftime_now", strftime_now_function},
};
static_assert(is_sorted_table(kFunctions));

}  // namespace

Function find_global(std::string_view name) {
  return find_entry(kFunctions, name);
}

}  // namespace brigade::model::jinja
