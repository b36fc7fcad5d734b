// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/model/jinja/budget.h"
#include "common/model/jinja/value.h"

namespace brigade::model::jinja {

/// As Python's str() prints it (`True`, `None`, `['a', 1]`); an undefined value is empty. Strings
/// keep their marks.
[[nodiscard]] Text to_text(Budget& budget, const Value& value);

/// As Python's repr(): strings in quotes.
[[nodiscard]] Text to_repr(Budget& budget, const Value& value);

/// Python's repr() of a float: the shortest digits that read back the same.
[[nodiscard]] std::string float_repr(double value);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::int64_t> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// As Python's json.dumps: HF's tojson, without HTML escapes. Fails on what JSON has no form for.
[[nodiscard]] Text to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace brigade::model::jinja
