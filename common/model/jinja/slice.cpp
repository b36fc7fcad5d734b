// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/slice.h"

#include <algorithm>

#include "common/model/jinja/operators.h"
#include "common/model/jinja/strings.h"

namespace brigade::model::jinja {
namespace {

std::int64_t part_or(const Value& value, std::int64_t fallback) {
  if (value.is_none()) return fallback;
  if (!value.is_integer() && !value.is_bool()) {
    fail("slice indices must be integers or None");
  }
  return value.integer();
}

/// The indices a slice takes, by Python's rule: counted from the end when negative, then clamped.
std::vector<std::size_t> indices(std::size_t size, const Value& begin_value, const Value& end_value,
                                 const Value& step_value) {
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t step = part_or(step_value, 1);
  if (step == 0) fail("slice step cannot be zero");
  const bool backwards = step < 0;
  const std::int64_t low = backwards ? -1 : 0;
  const std::int64_t high = backwards ? length - 1 : length;
  const auto clamp = [&](std::int64_t index) {
    return std::clamp(index < 0 ? index + length : index, low, high);
  };
  const std::int64_t begin =
      begin_value.is_none() ? (backwards ? high : low) : clamp(part_or(begin_value, 0));
  const std::int64_t end =
      end_value.is_none() ? (backwards ? low : high) : clamp(part_or(end_value, 0));
  std::vector<std::size_t> out;
  // The distance left is compared before a step is taken: steps of any size cannot overflow.
  for (std::int64_t i = begin; backwards ? i > end : i < end;) {
    out.push_back(static_cast<std::size_t>(i));
    if (backwards ? i - end <= -(step + 1) : end - i <= step) break;
    i += step;
  }
  return out;
}

}  // namespace

Value slice(Budget& budget, const Value& object, const Value& begin, const Value& end,
            const Value& step) {
  require_defined(object);
  if (const Text* text = object.text()) {
    const std::vector<std::size_t> offsets = character_offsets(budget, text->str());
    budget.bytes(text->size() * sizeof(std::size_t));
    Text out;
    for (const std::size_t i : indices(offsets.size() - 1, begin, end, step)) {
      out.append(*text, offsets[i], offsets[i + 1]);
    }
    return out;
  }
  const Array* array = object.array();
  if (array == nullptr) {
    fail(str_cat("'", object.type_name(), "' object cannot be sliced"));
  }
  budget.bytes(array->items.size() * (sizeof(Value) + sizeof(std::size_t)));
  std::vector<Value> items;
  for (const std::size_t i : indices(array->items.size(), begin, end, step)) {
    items.push_back(array->items[i]);
  }
  return array->is_tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

}  // namespace brigade::model::jinja
