// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "router/core/types.h"

namespace brigade::router {

/// Reads what the router needs of a GGUF file (description, tokenizer, chat template; no weights).
/// Its name and its greatest context are the file's own.
[[nodiscard]] Result<std::shared_ptr<ServedModel>> load_served_model(const std::string& path);

}  // namespace brigade::router
