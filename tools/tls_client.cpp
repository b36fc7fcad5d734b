// SPDX-License-Identifier: Apache-2.0
#include "tools/tls_client.h"

#include <cstdlib>

#include "common/base/strings.h"

namespace brigade::tools {

Status load_issuers(boost::asio::ssl::context& context, const HttpAddress& address) {
  if (!address.verify) return {};
  boost::system::error_code error;
  const char* file = std::getenv("BRIGADE_CA_FILE");
  if (file == nullptr) {
    context.set_default_verify_paths(error);
    return {};
  }
  context.load_verify_file(file, error);
  if (error) return invalid_argument(str_cat("BRIGADE_CA_FILE ", file, ": ", error.message()));
  return {};
}

}  // namespace brigade::tools
