// SPDX-License-Identifier: Apache-2.0
#include "common/net/socket.h"

#include <unistd.h>

#include <utility>

#include "common/net/endpoint.h"
#include "common/net/zmq_access.h"

namespace brigade::net {
namespace {

/// ZMQ_ZAP_ENFORCE_DOMAIN, hidden behind ZMQ_BUILD_DRAFT_API in zmq.h though the library knows it:
/// without it a server whose ZAP handler is missing lets every key in.
constexpr int kZapEnforceDomain = 93;
constexpr std::size_t kMaxRoutingId = 255;

int to_ms(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

Status set_option(void* socket, int option, const void* value, std::size_t size) {
  if (zmq_setsockopt(socket, option, value, size) == 0) return {};
  return internal_error(str_cat("socket option ", option, ": ", zmq_error()));
}

Status set_option(void* socket, int option, int value) {
  return set_option(socket, option, &value, sizeof value);
}

Status set_option(void* socket, int option, const std::string& value) {
  return set_option(socket, option, value.data(), value.size());
}

/// The domain names the roles: the ZAP handler needs to know no more of a socket.
std::string zap_domain(const std::vector<Role>& allowed) {
  std::string domain;
  for (const Role role : allowed) {
    if (!domain.empty()) domain += ',';
    domain += to_string(role);
  }
  return domain;
}

Role role_of(zmq_msg_t* message) {
  const char* user = zmq_msg_gets(message, "User-Id");
  if (user == nullptr) return Role::kNone;
  const std::string_view text = user;
  const auto role = parse_role(text.substr(0, text.find(':')));
  return role.ok() ? role.value() : Role::kNone;
}

}  // namespace

Socket::Socket(void* handle, bool is_router, SocketOptions options)
    : handle_(handle), is_router_(is_router), options_(std::move(options)) {}

Socket::~Socket() {
  for (const std::string& path : ipc_paths_)
    unlink(path.c_str());
  if (handle_ != nullptr) zmq_close(handle_);
}

Socket::Socket(Socket&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      is_router_(other.is_router_),
      ipc_paths_(std::exchange(other.ipc_paths_, {})),
      options_(std::move(other.options_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(is_router_, other.is_router_);
  std::swap(ipc_paths_, other.ipc_paths_);
  std::swap(options_, other.options_);
  return *this;
}

Result<Socket> Socket::router(Context& context, SocketOptions options) {
  void* handle = zmq_socket(ContextAccess::handle(context), ZMQ_ROUTER);
  if (handle == nullptr) return internal_error(str_cat("no socket: ", zmq_error()));
  Socket socket(handle, /*is_router=*/true, std::move(options));
  RETURN_IF_ERROR(socket.apply_options());
  RETURN_IF_ERROR(set_option(handle, ZMQ_ROUTER_MANDATORY, 1));
  RETURN_IF_ERROR(set_option(handle, ZMQ_ROUTER_HANDOVER, 0));
  RETURN_IF_ERROR(socket.apply_keys(context.authenticates()));
  return socket;
}

Result<Socket> Socket::dealer(Context& context, SocketOptions options) {
  if (options.routing_id.size() > kMaxRoutingId) {
    return invalid_argument(str_cat("a routing id has at most ", kMaxRoutingId, " bytes"));
  }
  void* handle = zmq_socket(ContextAccess::handle(context), ZMQ_DEALER);
  if (handle == nullptr) return internal_error(str_cat("no socket: ", zmq_error()));
  Socket socket(handle, /*is_router=*/false, std::move(options));
  RETURN_IF_ERROR(socket.apply_options());
  RETURN_IF_ERROR(set_option(handle, ZMQ_IMMEDIATE, 1));
  if (!socket.options_.routing_id.empty()) {
    RETURN_IF_ERROR(set_option(handle, ZMQ_ROUTING_ID, socket.options_.routing_id));
  }
  RETURN_IF_ERROR(socket.apply_keys(/*authenticates=*/true));
  return socket;
}

Status Socket::apply_options() {
  const std::int64_t max_bytes = static_cast<std::int64_t>(options_.max_message_bytes);
  RETURN_IF_ERROR(set_option(handle_, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_LINGER, to_ms(options_.linger)));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_SNDHWM, options_.max_queued));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_RCVHWM, options_.max_queued));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_HANDSHAKE_IVL, to_ms(options_.handshake_timeout)));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_HEARTBEAT_IVL, to_ms(options_.heartbeat_interval)));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_HEARTBEAT_TIMEOUT, to_ms(options_.heartbeat_timeout)));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_HEARTBEAT_TTL, to_ms(options_.heartbeat_timeout)));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_RECONNECT_IVL, options_.reconnect ? 100 : -1));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_RECONNECT_IVL_MAX, 2000));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_TCP_KEEPALIVE, 1));
  RETURN_IF_ERROR(set_option(handle_, ZMQ_BACKLOG, 1024));
  return set_option(handle_, ZMQ_IPV6, 1);
}

Status Socket::apply_keys(bool authenticates) {
  if (!options_.keys) return {};
  const Keys& keys = *options_.keys;
  if (is_router_) {
    if (!authenticates || options_.allowed.empty()) {
      return failed_precondition(
          "a socket with keys needs the context's allow_peers and the roles it lets in");
    }
    RETURN_IF_ERROR(set_option(handle_, ZMQ_CURVE_SERVER, 1));
    RETURN_IF_ERROR(set_option(handle_, ZMQ_ZAP_DOMAIN, zap_domain(options_.allowed)));
    RETURN_IF_ERROR(set_option(handle_, kZapEnforceDomain, 1));
  } else {
    if (keys.server_key.empty()) {
      return invalid_argument("the key file has no server_key: the router's public key");
    }
    RETURN_IF_ERROR(set_option(handle_, ZMQ_CURVE_SERVERKEY, keys.server_key));
    RETURN_IF_ERROR(set_option(handle_, ZMQ_CURVE_PUBLICKEY, keys.own.public_key));
  }
  return set_option(handle_, ZMQ_CURVE_SECRETKEY, keys.own.secret_key);
}

Result<std::string> Socket::bind(const std::string& endpoint) {
  RETURN_IF_ERROR(check_endpoint(endpoint));
  if (!options_.keys && !is_local_endpoint(endpoint)) {
    return Status(StatusCode::kPermissionDenied,
                  str_cat("binding ", quoted(endpoint),
                          " without keys would let anyone in: give a "
                          "key file, or bind 127.0.0.1, [::1] or ipc"));
  }
  // `localhost` may name two addresses, and libzmq binds no names.
  std::string place = endpoint;
  constexpr std::string_view kLocalhost = "tcp://localhost:";
  if (place.starts_with(kLocalhost)) place.replace(0, kLocalhost.size(), "tcp://127.0.0.1:");
  if (zmq_bind(handle_, place.c_str()) != 0) {
    return unavailable(str_cat("cannot bind ", quoted(endpoint), ": ", zmq_error()));
  }
  char bound[256];
  std::size_t size = sizeof bound;
  if (zmq_getsockopt(handle_, ZMQ_LAST_ENDPOINT, bound, &size) != 0) {
    return internal_error(str_cat("no endpoint of ", quoted(endpoint), ": ", zmq_error()));
  }
  constexpr std::string_view kIpc = "ipc://";
  if (endpoint.starts_with(kIpc)) ipc_paths_.push_back(endpoint.substr(kIpc.size()));
  return plain_endpoint(bound);
}

Status Socket::connect(const std::string& endpoint) {
  RETURN_IF_ERROR(check_endpoint(endpoint));
  if (zmq_connect(handle_, endpoint.c_str()) == 0) return {};
  return invalid_argument(str_cat("cannot connect to ", quoted(endpoint), ": ", zmq_error()));
}

Status Socket::check_sizes(const std::vector<Frame>& frames) const {
  INVARIANT(!frames.empty()) << "a message has a frame";
  for (const Frame& frame : frames) {
    if (frame.size() > options_.max_message_bytes) {
      return invalid_argument(str_cat("a message of ", frame.size(), " bytes, at most ",
                                      options_.max_message_bytes, " may be sent here"));
    }
  }
  return {};
}

Status Socket::send_frames(std::vector<Frame>& frames, const std::string* peer) {
  RETURN_IF_ERROR(check_sizes(frames));
  // Whether a message can go is decided at its first frame; the rest then follow.
  if (peer != nullptr &&
      zmq_send(handle_, peer->data(), peer->size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    if (zmq_errno() == EHOSTUNREACH) return unavailable("the peer is gone");
    if (zmq_errno() == EAGAIN) return resource_exhausted("the peer's queue is full");
    return internal_error(str_cat("send: ", zmq_error()));
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
    if (zmq_msg_send(FrameAccess::message(frames[i]), handle_, ZMQ_DONTWAIT | more) < 0) {
      if (zmq_errno() == EAGAIN) return resource_exhausted("no connection, or its queue is full");
      return internal_error(str_cat("send: ", zmq_error()));
    }
  }
  return {};
}

Status Socket::send(std::vector<Frame> frames) {
  INVARIANT(!is_router_);
  return send_frames(frames, nullptr);
}

Status Socket::send_until(std::vector<Frame> frames, TimePoint deadline) {
  INVARIANT(!is_router_);
  while (true) {
    const Status status = send_frames(frames, nullptr);
    if (status.code() != StatusCode::kResourceExhausted) return status;
    zmq_pollitem_t item = {handle_, 0, ZMQ_POLLOUT, 0};
    if (Clock::now() >= deadline) return deadline_exceeded(status.message());
    if (zmq_poll(&item, 1, poll_timeout_ms(deadline)) < 0 && zmq_errno() != EINTR) {
      return internal_error(str_cat("poll: ", zmq_error()));
    }
  }
}

Status Socket::send_to(const std::string& peer, std::vector<Frame> frames) {
  INVARIANT(is_router_);
  return send_frames(frames, &peer);
}

Result<std::optional<Received>> Socket::receive() {
  Received message;
  bool more = true;
  bool first = true;
  bool too_many = false;
  while (more) {
    Frame frame;
    zmq_msg_t* raw = FrameAccess::message(frame);
    if (zmq_msg_recv(raw, handle_, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() == EAGAIN) return std::optional<Received>();
      if (zmq_errno() == EINTR) continue;
      return internal_error(str_cat("receive: ", zmq_error()));
    }
    more = zmq_msg_more(raw) != 0;
    if (first && is_router_) {
      message.peer = std::string(frame.text());
    } else if (message.frames.size() >= options_.max_frames) {
      too_many = true;
    } else {
      if (message.frames.empty()) message.role = role_of(raw);
      message.frames.push_back(std::move(frame));
    }
    first = false;
  }
  if (too_many) {
    return data_loss(str_cat("a message of more than ", options_.max_frames, " frames from ",
                             quoted(message.peer)));
  }
  return std::optional<Received>(std::move(message));
}

Result<std::optional<Received>> Socket::receive_until(TimePoint deadline) {
  while (true) {
    ASSIGN_OR_RETURN(auto message, receive());
    if (message || Clock::now() >= deadline) return message;
    zmq_pollitem_t item = {handle_, 0, ZMQ_POLLIN, 0};
    if (zmq_poll(&item, 1, poll_timeout_ms(deadline)) < 0 && zmq_errno() != EINTR) {
      return internal_error(str_cat("poll: ", zmq_error()));
    }
  }
}

}  // namespace brigade::net
