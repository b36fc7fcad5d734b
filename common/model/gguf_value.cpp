// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_value.h"

#include <array>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/model/gguf_cursor.h"

namespace brigade::model {
namespace {

constexpr std::uint64_t kMaxArrayItems = 1U << 26U;
constexpr std::uint64_t kMaxStringBytes = 64U << 20U;

constexpr std::array<std::string_view, 13> kTypeNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

/// Bytes of a stored value; of a string and of an array the smallest.
std::uint64_t least_size(GgufType type) {
  constexpr std::array<std::uint64_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

bool is_float(GgufType type) {
  return type == GgufType::kF32 || type == GgufType::kF64;
}

Result<GgufType> read_type(Cursor& cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const auto id, cursor.read<std::uint32_t>(what));
  if (id > static_cast<std::uint32_t>(GgufType::kF64)) {
    return data_loss(str_cat(what, " has the unknown value type ", id));
  }
  return static_cast<GgufType>(id);
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// A stored integer of any type but u64, which may not fit.
std::int64_t load_integer(GgufType type, const std::byte* from) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kBool:
      return load<std::uint8_t>(from);
    case GgufType::kI8:
      return load<std::int8_t>(from);
    case GgufType::kU16:
      return load<std::uint16_t>(from);
    case GgufType::kI16:
      return load<std::int16_t>(from);
    case GgufType::kU32:
      return load<std::uint32_t>(from);
    case GgufType::kI32:
      return load<std::int32_t>(from);
    default:
      return load<std::int64_t>(from);
  }
}

double load_float(GgufType type, const std::byte* from) {
  return type == GgufType::kF32 ? static_cast<double>(load<float>(from)) : load<double>(from);
}

/// Items that are of no use whatever is done with them.
Status check_items(const GgufArray& array, std::string_view what) {
  if (array.type == GgufType::kBool) {
    for (const std::byte item : array.bytes) {
      if (item > std::byte{1}) {
        return data_loss(
            str_cat(what, " holds a bool with the value ", std::to_integer<int>(item)));
      }
    }
  }
  if (array.type == GgufType::kU64) {
    for (std::uint64_t i = 0; i < array.count; ++i) {
      const auto value = load<std::uint64_t>(array.bytes.data() + 8 * i);
      if (!std::in_range<std::int64_t>(value)) {
        return data_loss(str_cat(what, " holds ", value, ", which does not fit 63 bits"));
      }
    }
  }
  return {};
}

Result<GgufValue> read_array(Cursor& cursor, std::string_view what) {
  GgufArray array;
  ASSIGN_OR_RETURN(array.type, read_type(cursor, what));
  ASSIGN_OR_RETURN(array.count, cursor.read<std::uint64_t>(what));
  if (array.type == GgufType::kArray) return data_loss(str_cat(what, " is an array of arrays"));
  const std::uint64_t size = least_size(array.type);
  if (array.count > kMaxArrayItems || array.count > cursor.remaining() / size) {
    return data_loss(str_cat(what, " claims ", array.count, " items; ", cursor.remaining(),
                             " bytes are left in the file, and at most ", kMaxArrayItems,
                             " items are read"));
  }
  if (array.type != GgufType::kString) {
    ASSIGN_OR_RETURN(array.bytes, cursor.take(what, array.count * size));
    RETURN_IF_ERROR(check_items(array, what));
    return GgufValue(array);
  }
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  for (std::uint64_t i = 0; i < array.count; ++i) {
    ASSIGN_OR_RETURN(const auto text, cursor.read_string(what, kMaxStringBytes));
    end = reinterpret_cast<const std::byte*>(text.data()) + text.size();
    if (i == 0) begin = end - text.size() - sizeof(std::uint64_t);
  }
  array.bytes = {begin, end};
  return GgufValue(array);
}

}  // namespace

std::string_view to_string(GgufType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

bool GgufArray::holds_integers() const {
  return type != GgufType::kString && !is_float(type);
}

bool GgufArray::holds_floats() const {
  return is_float(type);
}

std::vector<std::int64_t> GgufArray::integers() const {
  INVARIANT(holds_integers()) << to_string(type);
  std::vector<std::int64_t> items(count);
  for (std::uint64_t i = 0; i < count; ++i)
    items[i] = load_integer(type, bytes.data() + i * least_size(type));
  return items;
}

std::vector<double> GgufArray::floats() const {
  INVARIANT(holds_floats()) << to_string(type);
  std::vector<double> items(count);
  for (std::uint64_t i = 0; i < count; ++i)
    items[i] = load_float(type, bytes.data() + i * least_size(type));
  return items;
}

std::vector<std::string_view> GgufArray::strings() const {
  INVARIANT(type == GgufType::kString) << to_string(type);
  std::vector<std::string_view> items;
  items.reserve(count);
  const std::byte* at = bytes.data();
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = load<std::uint64_t>(at);
    at += sizeof length;
    items.emplace_back(reinterpret_cast<const char*>(at), length);
    at += length;
  }
  return items;
}

Result<GgufValue> read_value(Cursor& cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const auto type, read_type(cursor, what));
  if (type == GgufType::kArray) return read_array(cursor, what);
  if (type == GgufType::kString) {
    ASSIGN_OR_RETURN(const auto text, cursor.read_string(what, kMaxStringBytes));
    return GgufValue(text);
  }
  ASSIGN_OR_RETURN(const auto bytes, cursor.take(what, least_size(type)));
  if (is_float(type)) return GgufValue(load_float(type, bytes.data()));
  if (type == GgufType::kU64) return GgufValue(load<std::uint64_t>(bytes.data()));
  const std::int64_t value = load_integer(type, bytes.data());
  if (type != GgufType::kBool) return GgufValue(value);
  if (value > 1) return data_loss(str_cat(what, " is a bool with the value ", value));
  return GgufValue(value != 0);
}

std::string describe(const GgufValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return str_cat(*integer);
  if (const auto* wide = std::get_if<std::uint64_t>(&value)) return str_cat(*wide);
  if (const auto* number = std::get_if<double>(&value)) return str_cat(*number);
  if (const auto* text = std::get_if<std::string_view>(&value)) return quoted(*text, 60);
  const auto& array = std::get<GgufArray>(value);
  return str_cat("[", array.count, " x ", to_string(array.type), "]");
}

}  // namespace brigade::model
