// SPDX-License-Identifier: Apache-2.0
#include "tools/cli.h"

#include <utility>

#include "tools/launch.h"

namespace brigade::tools {

std::shared_ptr<std::string> add_http(CLI::App* command) {
  auto http = std::make_shared<std::string>();
  command
      ->add_option("--http", *http, "the router's HTTP address; default: the one on this machine")
      ->option_text("URL");
  return http;
}

Status with_router(const std::string& http, const std::function<Status(const ApiClient&)>& use) {
  ASSIGN_OR_RETURN(RouterAddress address, find_router(http));
  return use(ApiClient(std::move(address)));
}

}  // namespace brigade::tools
