// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli.h"

namespace brigade::tools {

/// `brigade bench`.
void add_bench(CLI::App& app, Action& action);

}  // namespace brigade::tools
