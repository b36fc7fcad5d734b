// SPDX-License-Identifier: Apache-2.0
#include "common/model/spec_keys.h"

#include <algorithm>
#include <functional>

#include "common/base/strings.h"

namespace brigade::model {

std::string SpecKeys::key(std::string_view name) const {
  return str_cat(prefix_, ".", name);
}

Result<std::int64_t> SpecKeys::integer(std::string_view name, std::int64_t min,
                                       std::int64_t max) const {
  const std::string full = key(name);
  auto scalar = file_.integer(full);
  if (!scalar.ok()) {
    const auto array = file_.integers(full);
    if (!array.ok() || array->empty()) return scalar.status();
    if (std::adjacent_find(array->begin(), array->end(), std::not_equal_to<>()) != array->end()) {
      return invalid_argument(
          str_cat("key ", quoted(full), " differs between layers, which is not supported"));
    }
    scalar = array->front();
  }
  if (*scalar < min || *scalar > max) {
    return data_loss(
        str_cat("key ", quoted(full), " is ", *scalar, "; ", min, " to ", max, " is allowed"));
  }
  return scalar;
}

Result<std::int64_t> SpecKeys::integer_or(std::string_view name, std::int64_t fallback,
                                          std::int64_t min, std::int64_t max) const {
  if (!has(name)) return fallback;
  return integer(name, min, max);
}

Result<double> SpecKeys::number(std::string_view name, double min, double max) const {
  const std::string full = key(name);
  ASSIGN_OR_RETURN(const double value, file_.number(full));
  if (!(value > min && value <= max)) {
    return data_loss(str_cat("key ", quoted(full), " is ", value, "; above ", min, " up to ", max,
                             " is allowed"));
  }
  return value;
}

Result<double> SpecKeys::number_or(std::string_view name, double fallback, double min,
                                   double max) const {
  if (!has(name)) return fallback;
  return number(name, min, max);
}

Result<bool> SpecKeys::boolean_or(std::string_view name, bool fallback) const {
  if (!has(name)) return fallback;
  return file_.boolean(key(name));
}

}  // namespace brigade::model
