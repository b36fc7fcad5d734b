// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "router/core/types.h"
#include "router/process/options.h"

namespace brigade::router {

/// Reads what the router needs of each model file (description, tokenizer, chat template; no
/// weights) and checks that the grid fits it. Errors name the file.
[[nodiscard]] Result<std::vector<std::shared_ptr<const ServedModel>>> load_models(
    const RouterOptions& options);

}  // namespace brigade::router
