// SPDX-License-Identifier: Apache-2.0
#include "clients/cpp/brigade_client.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "common/base/strings.h"
#include "common/net/socket.h"
#include "common/wire/codec.h"

namespace brigade::client {
namespace {

/// Unread messages of one stream; a stream left unread for longer fails instead of filling memory.
constexpr std::size_t kMaxUnread = 100'000;
constexpr Duration kLastWords = std::chrono::milliseconds(200);

std::uint64_t request_of(const wire::FromRouter& message) {
  return std::visit(
      [](const auto& m) -> std::uint64_t {
        if constexpr (requires { m.request; }) return m.request;
        return 0;
      },
      message);
}

}  // namespace

struct Client::Impl {
  static Result<std::unique_ptr<Impl>> make(ClientOptions options) {
    auto impl = std::make_unique<Impl>();
    net::SocketOptions socket_options = {.max_message_bytes = wire::kMaxClientBytes,
                                         .max_frames = 1,
                                         .max_queued = 10000,
                                         .linger = kLastWords,
                                         .keys = options.keys};
    ASSIGN_OR_RETURN(net::Socket socket,
                     net::Socket::dealer(impl->context, std::move(socket_options)));
    RETURN_IF_ERROR(socket.connect(options.endpoint));
    impl->socket.emplace(std::move(socket));
    impl->options = std::move(options);
    return impl;
  }

  Status send(const wire::ToRouter& message, TimePoint deadline) {
    std::vector<net::Frame> frames;
    frames.emplace_back(encoder.encode(message));
    return socket->send_until(std::move(frames), deadline);
  }

  /// The next message for this request; what comes for others waits in their boxes. Silence is
  /// measured while someone listens: between calls the signs of life wait in the socket.
  Result<wire::FromRouter> receive(std::uint64_t request, TimePoint deadline) {
    TimePoint last_heard = Clock::now();
    while (true) {
      auto& box = boxes.at(request);
      if (!box.empty()) {
        wire::FromRouter message = std::move(box.front());
        box.pop_front();
        return message;
      }
      const TimePoint silent = last_heard + options.silence_timeout;
      ASSIGN_OR_RETURN(auto received, socket->receive_until(std::min(deadline, silent)));
      if (received) {
        last_heard = Clock::now();
        RETURN_IF_ERROR(sort(*received));
      } else if (Clock::now() >= deadline) {
        return deadline_exceeded("no answer from the router yet");
      } else if (Clock::now() >= silent) {
        return unavailable(str_cat("the router at ", options.endpoint, " is silent"));
      }
    }
  }

  Status sort(const net::Received& received) {
    if (received.frames.size() != 1) return data_loss("an answer is one frame");
    ASSIGN_OR_RETURN(wire::FromRouter message,
                     wire::decode_from_router(received.frames[0].bytes()));
    const auto box = boxes.find(request_of(message));
    // Late words on a request that was let go.
    if (box == boxes.end()) return {};
    if (box->second.size() >= kMaxUnread) {
      return resource_exhausted("a stream has too many unread chunks");
    }
    box->second.push_back(std::move(message));
    return {};
  }

  template <typename Reply, typename Request>
  Result<Reply> call(Request request, Duration timeout) {
    const TimePoint deadline = Clock::now() + timeout;
    request.request = next_request++;
    RETURN_IF_ERROR(send(request, deadline));
    boxes[request.request];
    auto message = receive(request.request, deadline);
    boxes.erase(request.request);
    if (!message.ok()) return message.status();
    if (auto* reply = std::get_if<Reply>(&*message)) return std::move(*reply);
    if (const auto* refused = std::get_if<wire::Refused>(&*message)) return refused->status;
    return data_loss("the router's answer is of another kind than the question");
  }

  ClientOptions options;
  net::Context context;
  std::optional<net::Socket> socket;
  wire::Encoder encoder;
  std::uint64_t next_request = 1;
  std::map<std::uint64_t, std::deque<wire::FromRouter>> boxes;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::connect(ClientOptions options) {
  const Duration timeout = options.connect_timeout;
  ASSIGN_OR_RETURN(auto impl, Impl::make(std::move(options)));
  std::unique_ptr<Client> client(new Client(std::move(impl)));
  // A connection says nothing yet: a refused key or another server shows only in the first answer.
  const auto first = client->impl_->call<wire::Models>(wire::ListModels{}, timeout);
  if (!first.ok()) {
    return first.status().with_context(
        str_cat("no router at ", client->impl_->options.endpoint, " (or it refuses this key)"));
  }
  return client;
}

Result<std::vector<wire::ModelInfo>> Client::models() {
  ASSIGN_OR_RETURN(wire::Models reply,
                   impl_->call<wire::Models>(wire::ListModels{}, impl_->options.call_timeout));
  return std::move(reply.models);
}

Result<std::string> Client::status() {
  ASSIGN_OR_RETURN(wire::StatusReply reply,
                   impl_->call<wire::StatusReply>(wire::GetStatus{}, impl_->options.call_timeout));
  return std::move(reply.json);
}

Status Client::drain(std::uint32_t replica) {
  return impl_
      ->call<wire::Done>(wire::Drain{.request = 0, .replica = replica}, impl_->options.call_timeout)
      .status();
}

Result<Stream> Client::generate(wire::Generate request) {
  request.request = impl_->next_request++;
  RETURN_IF_ERROR(impl_->send(request, Clock::now() + impl_->options.call_timeout));
  impl_->boxes[request.request];
  return Stream(impl_.get(), request.request);
}

Result<wire::Finished> Client::generate(wire::Generate request,
                                        const std::function<bool(const wire::Chunk&)>& on_chunk,
                                        TimePoint deadline) {
  ASSIGN_OR_RETURN(Stream stream, generate(std::move(request)));
  while (true) {
    ASSIGN_OR_RETURN(auto chunk, stream.next(deadline));
    if (!chunk) return *stream.finished();
    if (!on_chunk(*chunk)) stream.cancel();
  }
}

Stream::Stream(Client::Impl* client, std::uint64_t request) : client_(client), request_(request) {}

Stream::Stream(Stream&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      request_(other.request_),
      ended_(other.ended_),
      finished_(std::move(other.finished_)),
      retry_after_s_(other.retry_after_s_),
      drop_reason_(other.drop_reason_) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(request_, other.request_);
  std::swap(ended_, other.ended_);
  std::swap(finished_, other.finished_);
  std::swap(retry_after_s_, other.retry_after_s_);
  std::swap(drop_reason_, other.drop_reason_);
  return *this;
}

Stream::~Stream() {
  if (client_ == nullptr) return;
  if (!ended_) cancel();
  client_->boxes.erase(request_);
}

void Stream::cancel() {
  // Without room now there is no connection, and the router will notice that by itself.
  (void)client_->send(wire::Cancel{.request = request_}, Clock::now());
}

Result<std::optional<wire::Chunk>> Stream::next(TimePoint deadline) {
  while (!ended_) {
    ASSIGN_OR_RETURN(wire::FromRouter message, client_->receive(request_, deadline));
    if (auto* chunk = std::get_if<wire::Chunk>(&message)) {
      return std::optional<wire::Chunk>(std::move(*chunk));
    }
    if (auto* finished = std::get_if<wire::Finished>(&message)) {
      ended_ = true;
      finished_ = std::move(*finished);
    } else if (auto* refused = std::get_if<wire::Refused>(&message)) {
      ended_ = true;
      retry_after_s_ = refused->retry_after_s;
      drop_reason_ = refused->reason;
      return std::move(refused->status);
    }
  }
  if (!finished_) return failed_precondition("the stream has ended with an error");
  return std::optional<wire::Chunk>();
}

}  // namespace brigade::client
