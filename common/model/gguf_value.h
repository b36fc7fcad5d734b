// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace brigade::model {

class Cursor;

/// Value types as stored.
enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

[[nodiscard]] std::string_view to_string(GgufType type);

/// An array as it lies in the header: its items are whole and in range, and are read when asked
/// for, so that many small items do not grow in memory.
struct GgufArray {
  GgufType type = GgufType::kU8;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;

  [[nodiscard]] bool holds_integers() const;
  [[nodiscard]] bool holds_floats() const;
  [[nodiscard]] std::vector<std::int64_t> integers() const;
  [[nodiscard]] std::vector<double> floats() const;
  [[nodiscard]] std::vector<std::string_view> strings() const;
};

/// Strings and arrays are views of the header.
using GgufValue =
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, GgufArray>;

/// Reads a value type and the value. `what` names it in errors.
[[nodiscard]] Result<GgufValue> read_value(Cursor& cursor, std::string_view what);

/// For people: `7`, `"text"`, `49152 strings`.
[[nodiscard]] std::string describe(const GgufValue& value);

}  // namespace brigade::model
