// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "router/process/options.h"
#include "router/process/process.h"

int main(int argc, char** argv) {
  namespace router = brigade::router;
  router::block_stop_signals();
  router::RouterOptions options;
  int exit_code = 0;
  if (!router::parse_options(argc, argv, options, exit_code)) return exit_code;
  brigade::init_log("router");
  auto process = router::RouterProcess::start(options);
  brigade::Status status = process.status();
  if (process.ok()) status = (*process)->run();
  if (status.ok()) return 0;
  std::cerr << "brigade-router: " << status.message() << '\n';
  return 1;
}
