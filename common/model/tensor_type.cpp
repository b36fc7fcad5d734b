// SPDX-License-Identifier: Apache-2.0
#include "common/model/tensor_type.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace brigade::model {
namespace {

/// One readable type: ggml's name, and how many weights its block holds in how
/// many bytes.
struct TypeRow {
  TensorType type;
  std::string_view name;
  std::int64_t elements;
  std::int64_t bytes;
  double bits_in_memory;
};

constexpr std::array<TypeRow, 16> kReadable = {{
    {TensorType::kF32, "F32", 1, 4, 32},
    {TensorType::kF16, "F16", 1, 2, 16},
    {TensorType::kBF16, "BF16", 1, 2, 16},
    {TensorType::kQ8_0, "Q8_0", 32, 34, 8.5},
    {TensorType::kQ4_0, "Q4_0", 32, 18, 4.5},
    {TensorType::kQ4_1, "Q4_1", 32, 20, 5},
    {TensorType::kQ5_0, "Q5_0", 32, 22, 8.5},
    {TensorType::kQ5_1, "Q5_1", 32, 24, 9},
    {TensorType::kQ2_K, "Q2_K", 256, 84, 5.125},
    {TensorType::kQ3_K, "Q3_K", 256, 110, 5.125},
    {TensorType::kQ4_K, "Q4_K", 256, 144, 4.625},
    {TensorType::kQ5_K, "Q5_K", 256, 176, 8.625},
    {TensorType::kQ6_K, "Q6_K", 256, 210, 8.5625},
    {TensorType::kIQ4_NL, "IQ4_NL", 32, 18, 5},
    {TensorType::kIQ4_XS, "IQ4_XS", 256, 136, 5},
    {TensorType::kMXFP4, "MXFP4", 32, 17, 5},
}};

struct TypeName {
  std::uint32_t id;
  std::string_view name;
};

/// ggml's other type ids (ggml.h), so that a refusal can name what it refuses.
constexpr std::array<TypeName, 26> kOther = {{
    {4, "Q4_2, removed from ggml"},
    {5, "Q4_3, removed from ggml"},
    {9, "Q8_1"},
    {15, "Q8_K"},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {24, "I8"},
    {25, "I16"},
    {26, "I32"},
    {27, "I64"},
    {28, "F64"},
    {29, "IQ1_M"},
    {31, "Q4_0_4_4, removed from ggml"},
    {32, "Q4_0_4_8, removed from ggml"},
    {33, "Q4_0_8_8, removed from ggml"},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {36, "IQ4_NL_4_4, removed from ggml"},
    {37, "IQ4_NL_4_8, removed from ggml"},
    {38, "IQ4_NL_8_8, removed from ggml"},
    {40, "NVFP4"},
    {41, "Q1_0"},
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

double bits_in_memory(TensorType type) {
  return row_of(type).bits_in_memory;
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
