// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "common/base/float16.h"
#include "common/base/strings.h"
#include "common/model/gguf.h"

namespace brigade::model {

Status TensorInfo::read(std::uint64_t begin, std::span<std::byte> out) const {
  if (begin > bytes || out.size() > bytes - begin) {
    return data_loss(str_cat("tensor ", quoted(name), " has ", bytes, " bytes; ", out.size(),
                             " are wanted at ", begin));
  }
  return source->read(offset + begin, out);
}

Result<std::vector<float>> TensorInfo::read_floats() const {
  if (block_elements(type) != 1) {
    return invalid_argument(str_cat("tensor ", quoted(name), " is stored as ", to_string(type),
                                    "; it must be F32, F16 or BF16"));
  }
  std::vector<std::byte> stored(bytes);
  RETURN_IF_ERROR(read(0, stored));
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  if (type == TensorType::kF32) {
    std::memcpy(values.data(), stored.data(), stored.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, stored.data() + 2 * i, sizeof bits);
    values[i] = type == TensorType::kF16 ? f32_from_f16(bits) : f32_from_bf16(bits);
  }
  return values;
}

}  // namespace brigade::model
