// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "router/api/http/mailbox.h"
#include "router/api/service.h"

namespace brigade::router {

/// What every call of the door needs. The service outlives the door.
struct DoorContext {
  Service& service;
  std::shared_ptr<Mailbox> mailbox;
  std::string version;
  std::int64_t started_s = 0;  ///< Unix time: `created` of the models
};

/// `prefix` and 24 random hex digits. Any thread.
[[nodiscard]] std::string make_id(std::string_view prefix);
[[nodiscard]] std::int64_t unix_seconds();

}  // namespace brigade::router
