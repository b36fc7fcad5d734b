// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/model/gguf.h"

namespace brigade::model {

/// The type of a stored id, when it is one that can be read.
[[nodiscard]] std::optional<TensorType> readable_type(std::uint32_t id);

/// ggml's name of any type id with its number, for messages: `Q4_K (12)`, `unknown type (255)`.
[[nodiscard]] std::string describe_type(std::uint32_t id);

/// The names of all types that can be read, for messages.
[[nodiscard]] std::string readable_types();

}  // namespace brigade::model
