// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "common/model/jinja/value.h"

namespace brigade::model {

/// All of a file; empty when it cannot be read.
inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// JSON as values of the template language, strings untrusted.
inline jinja::Value to_value(const boost::json::value& json) {
  using jinja::Value;
  if (json.is_null()) return jinja::None();
  if (json.is_bool()) return Value(json.get_bool());
  if (json.is_int64()) return Value(json.get_int64());
  if (json.is_double()) return Value(json.get_double());
  if (json.is_string()) {
    return Value::string(std::string(json.get_string()), /*trusted=*/false);
  }
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json.get_array())
      items.push_back(to_value(item));
    return Value::list(std::move(items));
  }
  std::vector<std::pair<Value, Value>> items;
  for (const auto& item : json.as_object()) {
    items.emplace_back(Value::string(std::string(item.key()), /*trusted=*/true),
                       to_value(item.value()));
  }
  return Value::dict(std::move(items));
}

}  // namespace brigade::model
