// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/net/context.h"
#include "common/net/keys.h"
#include "router/api/service.h"

namespace brigade::router {

struct ZmqDoorOptions {
  std::string endpoint = "tcp://127.0.0.1:0";
  std::optional<net::Keys> keys;  ///< lets in services and operators
  std::size_t max_requests_per_client = 1024;
  std::size_t max_requests = 65536;
  std::size_t max_outbox = 1 << 16;   ///< outputs that wait for the door's thread
  int max_queued_per_client = 10000;  ///< messages a client has not read; above: its requests end
  Duration keep_alive_interval = std::chrono::seconds(1);
};

/// The router's socket for services: ZeroMQ with schemas/client.fbs, on one thread of its own. A
/// client that leaves, or does not read, has its requests cancelled. The service must outlive the
/// door.
class ZmqDoor final {
 public:
  static Result<std::unique_ptr<ZmqDoor>> start(net::Context& context, ZmqDoorOptions options,
                                                Service& service);
  /// Ends the thread. Requests still open are cancelled, and their clients told, as far as their
  /// queues take it.
  ~ZmqDoor();

  /// Where clients connect to, with the real port.
  [[nodiscard]] const std::string& endpoint() const;

 private:
  struct Impl;
  explicit ZmqDoor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::router
