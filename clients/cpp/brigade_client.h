// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/net/keys.h"
#include "common/wire/client.h"

/// A client of the router's socket.
namespace brigade::client {

struct ClientOptions {
  std::string endpoint;           ///< such as tcp://127.0.0.1:8001
  std::optional<net::Keys> keys;  ///< where the socket wants them
  Duration connect_timeout = std::chrono::seconds(5);
  Duration call_timeout = std::chrono::seconds(10);  ///< models, status, drain
  /// The router sends a sign of life each second.
  Duration silence_timeout = std::chrono::seconds(10);
};

class Stream;

/// One connection. Not thread-safe; several streams may be open on it and be read in any order.
class Client final {
 public:
  /// kDeadlineExceeded when no router answers there, or the key is refused.
  static Result<std::unique_ptr<Client>> connect(ClientOptions options);
  ~Client();

  [[nodiscard]] Result<std::vector<wire::ModelInfo>> models();
  /// The JSON that `brigade status --json` shows.
  [[nodiscard]] Result<std::string> status();
  /// Where the socket has keys: operators only.
  [[nodiscard]] Status drain(std::uint32_t replica);

  /// Sends a request (its number is filled in). The stream must be gone before the client.
  [[nodiscard]] Result<Stream> generate(wire::Generate request);
  /// As above, waiting for the end and giving each chunk to `on_chunk`; returning false there
  /// cancels.
  [[nodiscard]] Result<wire::Finished> generate(
      wire::Generate request, const std::function<bool(const wire::Chunk&)>& on_chunk,
      TimePoint deadline);

 private:
  friend class Stream;
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The answer to one request, to be read to its end. Destroyed before, it cancels the request.
class Stream final {
 public:
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  /// The next chunk, or nothing at the end: then finished() is there. kDeadlineExceeded at the
  /// deadline: call again or let go. kUnavailable when the router is gone. Any other error is the
  /// router's: the stream has ended.
  [[nodiscard]] Result<std::optional<wire::Chunk>> next(TimePoint deadline);
  [[nodiscard]] const std::optional<wire::Finished>& finished() const { return finished_; }
  /// After a router's error: when to try again, 0 if it did not say.
  [[nodiscard]] std::uint32_t retry_after_s() const { return retry_after_s_; }
  /// Beside it: why the request was given up, and so whether compute was spent on it.
  [[nodiscard]] wire::DropReason drop_reason() const { return drop_reason_; }
  /// Asks the router to end it: read on for the end (FinishReason::kCancelled, unless it had ended
  /// already).
  void cancel();

 private:
  friend class Client;
  Stream(Client::Impl* client, std::uint64_t request);

  Client::Impl* client_;
  std::uint64_t request_;
  bool ended_ = false;
  std::optional<wire::Finished> finished_;
  std::uint32_t retry_after_s_ = 0;
  wire::DropReason drop_reason_ = wire::DropReason::kNone;
};

}  // namespace brigade::client
