// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "tools/api_client.h"

/// What the definitions of commands share.
namespace brigade::tools {

/// What the command that was chosen does.
using Action = std::function<Status()>;

/// `--http`, shared by all commands that talk to a router.
std::shared_ptr<std::string> add_http(CLI::App* command);

/// Runs `use` with a client of the router that `http` names.
Status with_router(const std::string& http, const std::function<Status(const ApiClient&)>& use);

}  // namespace brigade::tools
