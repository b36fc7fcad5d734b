// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "router/api/http/door_metrics.h"
#include "router/api/http/mailbox.h"
#include "router/api/service.h"

namespace brigade::router {

/// What every call of the door needs. The service outlives the door.
struct DoorContext {
  Service& service;
  std::shared_ptr<Mailbox> mailbox;
  std::string version;
  std::int64_t started_s = 0;                      ///< Unix time: `created` of the models
  std::function<DoorMetrics()> door_metrics = {};  ///< on the I/O thread
  bool vllm_metrics = false;
};

/// `prefix` and 24 random hex digits. Any thread.
[[nodiscard]] std::string make_id(std::string_view prefix);
[[nodiscard]] std::int64_t unix_seconds();

}  // namespace brigade::router
