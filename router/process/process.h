// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "router/process/options.h"

namespace brigade::router {

/// Keeps SIGINT and SIGTERM from ending the process by themselves, in this thread and those it
/// makes: call first in main.
void block_stop_signals();

/// The router as a process: its doors, its entry in the runtime folder, and its orderly end.
class RouterProcess final {
 public:
  /// Everything listens when it returns, and the runtime folder says so.
  static Result<std::unique_ptr<RouterProcess>> start(const RouterOptions& options);
  ~RouterProcess();

  /// Until a signal, or the end of the expected parent. Prints the `ready` line when the time has
  /// come.
  [[nodiscard]] Status run();

 private:
  struct Impl;
  explicit RouterProcess(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::router
