// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/model/gguf_header.h"

namespace brigade::model {

/// The most parts a model is read from.
inline constexpr std::int64_t kMaxParts = 512;

/// How many parts a model has, told by its first one; checks that `path` is the first's.
[[nodiscard]] Result<std::int64_t> count_parts(const GgufHeader& first, const std::string& path);

/// The first part's path without its number.
[[nodiscard]] std::string first_part_stem(const std::string& first_path, std::int64_t count);

/// The path of part `index` (from 0), given the first's.
[[nodiscard]] std::string part_path(const std::string& first_path, std::int64_t index,
                                    std::int64_t count);

/// Checks that a part says it is number `index` of `count`.
[[nodiscard]] Status check_part(const GgufHeader& part, std::int64_t index, std::int64_t count);

}  // namespace brigade::model
