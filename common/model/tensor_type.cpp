// SPDX-License-Identifier: Apache-2.0
#include "common/model/tensor_type.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace brigade::model {
namespace {

/// One readable type: ggml's name, and how many weights its block holds in how many bytes.
struct TypeRow {
  TensorType type;
  std::string_view name;
  std::int64_t elements;
  std::int64_t bytes;
};

constexpr std::array<TypeRow, 5> kReadable = {{
    {TensorType::kF32, "F32", 1, 4},
    {TensorType::kF16, "F16", 1, 2},
    {TensorType::kBF16, "BF16", 1, 2},
    {TensorType::kQ8_0, "Q8_0", 32, 34},
    {TensorType::kQ4_1, "Q4_1", 32, 20},
}};

struct TypeName {
  std::uint32_t id;
  std::string_view name;
};

/// ggml's other type ids (ggml.h), so that a refusal can name what it refuses.
constexpr std::array<TypeName, 26> kOther = {{
    {2, "Q4_0"},     {6, "Q5_0"},   {7, "Q5_1"},    {9, "Q8_1"},   {10, "Q2_K"},    {11, "Q3_K"},
    {12, "Q4_K"},    {13, "Q5_K"},  {14, "Q6_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {39, "MXFP4"},
}};

const TypeRow& row_of(TensorType type) {
  const auto* row = std::find_if(kReadable.begin(), kReadable.end(),
                                 [type](const TypeRow& r) { return r.type == type; });
  INVARIANT(row != kReadable.end()) << "type " << static_cast<std::uint32_t>(type);
  return *row;
}

}  // namespace

std::string_view to_string(TensorType type) {
  return row_of(type).name;
}
std::int64_t block_elements(TensorType type) {
  return row_of(type).elements;
}
std::int64_t block_bytes(TensorType type) {
  return row_of(type).bytes;
}

std::optional<TensorType> readable_type(std::uint32_t id) {
  for (const TypeRow& row : kReadable) {
    if (static_cast<std::uint32_t>(row.type) == id) return row.type;
  }
  return std::nullopt;
}

std::string describe_type(std::uint32_t id) {
  if (const auto type = readable_type(id)) return str_cat(to_string(*type), " (", id, ")");
  for (const TypeName& other : kOther) {
    if (other.id == id) return str_cat(other.name, " (", id, ")");
  }
  return str_cat("unknown type (", id, ")");
}

std::string readable_types() {
  std::string names;
  for (const TypeRow& row : kReadable)
    names += str_cat(names.empty() ? "" : ", ", row.name);
  return names;
}

}  // namespace brigade::model
