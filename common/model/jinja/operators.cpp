// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/model/jinja/callable.h"
#include "common/model/jinja/string_format.h"
#include "common/model/jinja/strings.h"
#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_operands(std::string_view symbol, const Value& left, const Value& right) {
  fail(str_cat("unsupported operand type(s) for ", symbol, ": '", left.type_name(), "' and '",
               right.type_name(), "'"));
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::optional<std::int64_t> integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
  return result;
}

Value integer_op(BinaryOp op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &out);
      break;
    case BinaryOp::kSub:
      overflow = __builtin_sub_overflow(a, b, &out);
      break;
    case BinaryOp::kMul:
      overflow = __builtin_mul_overflow(a, b, &out);
      break;
    case BinaryOp::kDiv:
      return static_cast<double>(a) / static_cast<double>(b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod: {
      // INT64_MIN / -1 is the one quotient that does not fit.
      if (b == -1) {
        if (op == BinaryOp::kMod) return std::int64_t{0};
        overflow = __builtin_sub_overflow(std::int64_t{0}, a, &out);
        break;
      }
      out = op == BinaryOp::kMod ? floor_mod(a, b) : floor_div(a, b);
      break;
    }
    case BinaryOp::kPow: {
      if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
      const std::optional<std::int64_t> power = integer_power(a, b);
      overflow = !power;
      out = power.value_or(0);
      break;
    }
  }
  if (overflow) fail("integer overflow: values past 64 bits are not supported");
  return out;
}

Value float_op(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kFloorDiv:
      return std::floor(a / b);
    case BinaryOp::kMod: {
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case BinaryOp::kPow:
      return std::pow(a, b);
  }
  return Value();
}

Value number_op(BinaryOp op, const Value& left, const Value& right) {
  const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv || op == BinaryOp::kMod;
  const bool negative_power = op == BinaryOp::kPow && right.number() < 0;
  if ((divides && right.number() == 0) || (negative_power && left.number() == 0)) {
    fail("division by zero");
  }
  if (left.is_float() || right.is_float()) return float_op(op, left.number(), right.number());
  return integer_op(op, left.integer(), right.integer());
}

Value repeat(Budget& budget, const Value& value, const Value& times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, times.integer()));
  const std::size_t unit =
      value.text() != nullptr ? value.text()->size() : value.array()->items.size() * sizeof(Value);
  std::size_t total = 0;
  if (__builtin_mul_overflow(unit, count, &total)) {
    throw Error{resource_exhausted("a repetition past all memory")};
  }
  budget.bytes(total);
  budget.step(unit == 0 ? 0 : count);
  if (const Text* text = value.text()) {
    Text out;
    for (std::size_t i = 0; unit > 0 && i < count; ++i)
      out.append(*text);
    return out;
  }
  std::vector<Value> items;
  const std::vector<Value>& source = value.array()->items;
  for (std::size_t i = 0; unit > 0 && i < count; ++i) {
    items.insert(items.end(), source.begin(), source.end());
  }
  return value.array()->is_tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Value concatenate(Budget& budget, const Array& left, const Array& right) {
  budget.bytes((left.items.size() + right.items.size()) * sizeof(Value));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return left.is_tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

bool equal_dicts(Budget& budget, const Dict& left, const Dict& right) {
  if (left.items.size() != right.items.size()) return false;
  for (const std::pair<Value, Value>& entry : left.items) {
    const auto it = std::find_if(right.items.begin(), right.items.end(), [&](const auto& item) {
      return equal(budget, item.first, entry.first);
    });
    if (it == right.items.end() || !equal(budget, it->second, entry.second)) return false;
  }
  return true;
}

bool equal_arrays(Budget& budget, const Array& left, const Array& right) {
  if (left.is_tuple != right.is_tuple || left.items.size() != right.items.size()) return false;
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    if (!equal(budget, left.items[i], right.items[i])) return false;
  }
  return true;
}

}  // namespace

void require_defined(const Value& value) {
  if (const auto* undefined = std::get_if<Undefined>(&value.data())) {
    fail(str_cat(quoted(undefined->name), " is undefined"));
  }
}

Value apply(Budget& budget, BinaryOp op, const Value& left, const Value& right) {
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) return number_op(op, left, right);
  if (op == BinaryOp::kAdd) {
    if (left.text() != nullptr && right.text() != nullptr) {
      budget.bytes(left.text()->size() + right.text()->size());
      Text out = *left.text();
      out.append(*right.text());
      return out;
    }
    const bool arrays = left.array() != nullptr && right.array() != nullptr;
    if (arrays && left.array()->is_tuple == right.array()->is_tuple) {
      return concatenate(budget, *left.array(), *right.array());
    }
  }
  if (op == BinaryOp::kMod && left.text() != nullptr) {
    return percent_format(budget, *left.text(), right);
  }
  if (op == BinaryOp::kMul) {
    const auto repeats = [](const Value& value, const Value& times) {
      return (value.text() != nullptr || value.array() != nullptr) &&
             (times.is_integer() || times.is_bool());
    };
    if (repeats(left, right)) return repeat(budget, left, right);
    if (repeats(right, left)) return repeat(budget, right, left);
  }
  fail_operands(kSymbols[static_cast<std::size_t>(op)], left, right);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is_float()) return -value.number();
  if (!value.is_number()) fail(str_cat("bad operand type for unary -: '", value.type_name(), "'"));
  return integer_op(BinaryOp::kSub, 0, value.integer());
}

bool equal(Budget& budget, const Value& left, const Value& right) {
  budget.step();
  if (left.is_number() && right.is_number()) {
    if (left.is_float() || right.is_float()) return left.number() == right.number();
    return left.integer() == right.integer();
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    budget.step(std::min(left.text()->size(), right.text()->size()) / 64);
    return left.text()->str() == right.text()->str();
  }
  if (left.array() != nullptr && right.array() != nullptr) {
    return equal_arrays(budget, *left.array(), *right.array());
  }
  if (left.dict() != nullptr && right.dict() != nullptr) {
    return equal_dicts(budget, *left.dict(), *right.dict());
  }
  if (left.is_none() || left.is_undefined()) return left.data().index() == right.data().index();
  if (left.name_space() != nullptr) return left.name_space() == right.name_space();
  if (left.loop() != nullptr) return left.loop() == right.loop();
  return left.callable() != nullptr && left.callable() == right.callable();
}

bool less(Budget& budget, const Value& left, const Value& right) {
  budget.step();
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (left.is_float() || right.is_float()) return left.number() < right.number();
    return left.integer() < right.integer();
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    // UTF-8 sorts by bytes as Python does by code points.
    budget.step(std::min(left.text()->size(), right.text()->size()) / 64);
    return left.text()->str() < right.text()->str();
  }
  const Array* a = left.array();
  const Array* b = right.array();
  if (a == nullptr || b == nullptr || a->is_tuple != b->is_tuple) {
    fail(str_cat("'<' not supported between instances of '", left.type_name(), "' and '",
                 right.type_name(), "'"));
  }
  for (std::size_t i = 0; i < a->items.size() && i < b->items.size(); ++i) {
    if (!equal(budget, a->items[i], b->items[i])) return less(budget, a->items[i], b->items[i]);
  }
  return a->items.size() < b->items.size();
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_undefined()) return false;
  if (const Text* text = container.text()) {
    if (item.text() == nullptr) {
      fail(str_cat("'in <string>' requires string as left operand, not ", item.type_name()));
    }
    budget.step((text->size() + item.text()->size()) / 16);
    return find_bytes(text->str(), item.text()->str(), 0) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    return std::any_of(dict->items.begin(), dict->items.end(),
                       [&](const auto& entry) { return equal(budget, entry.first, item); });
  }
  if (const Array* array = container.array()) {
    return std::any_of(array->items.begin(), array->items.end(),
                       [&](const Value& entry) { return equal(budget, entry, item); });
  }
  fail(str_cat("argument of type '", container.type_name(), "' is not iterable"));
}

std::vector<Value> iterate(Budget& budget, const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (const Array* array = value.array()) {
    budget.bytes(array->items.size() * sizeof(Value));
    return array->items;
  }
  if (const Dict* dict = value.dict()) {
    budget.bytes(dict->items.size() * sizeof(Value));
    for (const auto& entry : dict->items)
      items.push_back(entry.first);
    return items;
  }
  if (const Text* text = value.text()) {
    constexpr std::size_t kCharacterCost = 96;  // bytes that a Value of one character takes, about
    budget.bytes(text->size() * kCharacterCost);
    for (std::size_t pos = 0; pos < text->size();) {
      const std::size_t length = utf8_step(text->str(), pos).length;
      items.emplace_back(text->slice(pos, pos + length));
      pos += length;
    }
    return items;
  }
  fail(str_cat("'", value.type_name(), "' object is not iterable"));
}

}  // namespace brigade::model::jinja
