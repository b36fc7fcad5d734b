// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/model/jinja/budget.h"
#include "common/model/jinja/value.h"

namespace brigade::model::jinja {

enum class BinaryOp : std::uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };

/// Python's arithmetic, within 64-bit integers; fails where Python raises, and on overflow.
[[nodiscard]] Value apply(Budget& budget, BinaryOp op, const Value& left, const Value& right);
[[nodiscard]] Value negate(const Value& value);

/// Python's ==. Charged by what is looked at.
[[nodiscard]] bool equal(Budget& budget, const Value& left, const Value& right);
/// Python's <; fails for kinds that have no order.
[[nodiscard]] bool less(Budget& budget, const Value& left, const Value& right);
/// Python's `item in container`.
[[nodiscard]] bool contains(Budget& budget, const Value& container, const Value& item);

/// The items of what a for statement can go over; fails for the rest. Strings give characters,
/// dicts keys.
[[nodiscard]] std::vector<Value> iterate(Budget& budget, const Value& value);

/// Fails, naming the value, when it is undefined.
void require_defined(const Value& value);

}  // namespace brigade::model::jinja
