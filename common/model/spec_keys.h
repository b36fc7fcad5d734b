// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/model/gguf.h"

namespace brigade::model {

/// Metadata below `{architecture}.`, range-checked.
class SpecKeys final {
 public:
  SpecKeys(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(architecture) {}

  [[nodiscard]] const GgufFile& file() const { return file_; }
  [[nodiscard]] std::string key(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return file_.has(key(name)); }

  /// A scalar, or a per-layer array whose entries are all the same.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view name, std::int64_t min,
                                             std::int64_t max) const;
  [[nodiscard]] Result<std::int64_t> integer_or(std::string_view name, std::int64_t fallback,
                                                std::int64_t min, std::int64_t max) const;
  /// Above `min` (not equal) and at most `max`; NaN is neither.
  [[nodiscard]] Result<double> number(std::string_view name, double min, double max) const;
  [[nodiscard]] Result<double> number_or(std::string_view name, double fallback, double min,
                                         double max) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view name, bool fallback) const;

 private:
  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace brigade::model
