// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/template_value.h"

#include <utility>

#include "common/base/overloaded.h"

namespace brigade::router {

model::jinja::Value to_template_value(const JsonValue& json) {
  using model::jinja::Value;
  return std::visit(
      Overloaded{[](std::nullptr_t) { return Value(model::jinja::None()); },
                 [](bool v) { return Value(v); }, [](std::int64_t v) { return Value(v); },
                 [](std::uint64_t v) { return Value(static_cast<double>(v)); },
                 [](double v) { return Value(v); },
                 [](const std::string& v) { return Value::string(v, /*trusted=*/false); },
                 [](const JsonValue::Array& array) {
                   std::vector<Value> items;
                   for (const JsonValue& item : array)
                     items.push_back(to_template_value(item));
                   return Value::list(std::move(items));
                 },
                 [](const JsonValue::Object& object) {
                   std::vector<std::pair<Value, Value>> items;
                   for (const JsonMember& member : object) {
                     items.emplace_back(Value::string(member.key, /*trusted=*/false),
                                        to_template_value(member.value));
                   }
                   return Value::dict(std::move(items));
                 }},
      json.data);
}

}  // namespace brigade::router
