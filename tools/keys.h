// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/status.h"

namespace brigade::tools {

/// Writes CURVE key files for a router and its peers into the directory, and says which. Files that
/// exist are kept.
[[nodiscard]] Status write_keys(const std::string& directory);

}  // namespace brigade::tools
