// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/value.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/model/jinja/callable.h"

namespace brigade::model::jinja {
namespace {

Value::Variant make_array(std::vector<Value> items, bool is_tuple) {
  int depth = 0;
  for (const Value& item : items)
    depth = std::max(depth, item.depth());
  return std::make_shared<const Array>(
      Array{.items = std::move(items), .is_tuple = is_tuple, .depth = depth + 1});
}

}  // namespace

Value::Value(Text text) : data_(std::make_shared<const Text>(std::move(text))) {}

Value Value::undefined(std::string name) {
  Value value;
  value.data_ = Undefined{std::move(name)};
  return value;
}

Value Value::string(std::string_view text, bool trusted) {
  return Value(Text(text, trusted));
}

Value Value::list(std::vector<Value> items) {
  Value value;
  value.data_ = make_array(std::move(items), /*is_tuple=*/false);
  return value;
}

Value Value::tuple(std::vector<Value> items) {
  Value value;
  value.data_ = make_array(std::move(items), /*is_tuple=*/true);
  return value;
}

Value Value::dict(std::vector<std::pair<Value, Value>> items) {
  int depth = 0;
  for (const auto& [key, item] : items)
    depth = std::max({depth, key.depth(), item.depth()});
  Value value;
  value.data_ = std::make_shared<const Dict>(Dict{.items = std::move(items), .depth = depth + 1});
  return value;
}

const Text* Value::text() const {
  return pointee<Text>();
}
const Array* Value::array() const {
  return pointee<Array>();
}
const Dict* Value::dict() const {
  return pointee<Dict>();
}
const Callable* Value::callable() const {
  return pointee<Callable>();
}
const LoopState* Value::loop() const {
  return pointee<LoopState>();
}

Namespace* Value::name_space() const {
  auto* const* pointer = std::get_if<Namespace*>(&data_);
  return pointer == nullptr ? nullptr : *pointer;
}

std::int64_t Value::integer() const {
  if (const bool* value = std::get_if<bool>(&data_)) return *value ? 1 : 0;
  INVARIANT(is_integer()) << type_name();
  return std::get<std::int64_t>(data_);
}

double Value::number() const {
  if (const double* value = std::get_if<double>(&data_)) return *value;
  return static_cast<double>(integer());
}

int Value::depth() const {
  if (const Array* value = array()) return value->depth;
  if (const Dict* value = dict()) return value->depth;
  if (const LoopState* value = loop()) return value->depth;
  if (const Callable* value = callable()) return value->depth;
  return 0;
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (const Text* value = text()) return !value->empty();
  if (const Array* value = array()) return !value->items.empty();
  if (const Dict* value = dict()) return !value->items.empty();
  return true;
}

std::string_view Value::type_name() const {
  constexpr std::string_view kNames[] = {"Undefined", "NoneType", "bool",       "int",
                                         "float",     "str",      "list",       "dict",
                                         "Namespace", "function", "LoopContext"};
  const Array* value = array();
  return value != nullptr && value->is_tuple ? "tuple" : kNames[data_.index()];
}

}  // namespace brigade::model::jinja
