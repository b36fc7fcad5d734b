// SPDX-License-Identifier: Apache-2.0
#include "common/net/authenticator.h"

#include <array>

#include "common/base/log.h"
#include "common/net/zmq_access.h"

namespace brigade::net {
namespace {

constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kMaxZapFrames = 16;
constexpr std::size_t kKeyBytes = 32;

// Places of a ZAP request's frames.
enum : std::size_t {
  kVersion = 0,
  kRequestId,
  kDomain,
  kAddress,
  kIdentity,
  kMechanism,
  kKey,
  kCount
};

void send_text(void* socket, std::string_view text, bool more) {
  zmq_send(socket, text.data(), text.size(), ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0));
}

/// `role` is one of the comma-separated roles of the domain.
bool domain_allows(std::string_view domain, Role role) {
  while (!domain.empty()) {
    const std::size_t comma = domain.find(',');
    if (domain.substr(0, comma) == to_string(role)) return true;
    if (comma == std::string_view::npos) break;
    domain.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Authenticator>> Authenticator::start(void* zmq_context) {
  if (zmq_has("curve") == 0) {
    return failed_precondition("this libzmq has no CURVE: keys cannot be checked");
  }
  void* socket = zmq_socket(zmq_context, ZMQ_REP);
  if (socket == nullptr) return internal_error(str_cat("no ZAP socket: ", zmq_error()));
  if (zmq_bind(socket, kZapEndpoint) != 0) {
    zmq_close(socket);
    return failed_precondition(str_cat("cannot bind ", kZapEndpoint, ": ", zmq_error()));
  }
  return std::unique_ptr<Authenticator>(new Authenticator(socket));
}

Authenticator::Authenticator(void* socket) : socket_(socket) {
  thread_ = std::thread([this] { run(); });
}

Authenticator::~Authenticator() {
  stop_.signal();
  thread_.join();
  zmq_close(socket_);
}

void Authenticator::allow(std::vector<AllowedPeer> peers) {
  std::map<std::string, AllowedPeer> by_key;
  for (AllowedPeer& peer : peers) {
    std::array<std::uint8_t, kKeyBytes> raw{};
    INVARIANT(zmq_z85_decode(raw.data(), peer.public_key.c_str()) != nullptr) << peer.name;
    by_key[std::string(raw.begin(), raw.end())] = std::move(peer);
  }
  const std::lock_guard lock(mutex_);
  peers_.swap(by_key);
}

void Authenticator::run() {
  while (true) {
    zmq_pollitem_t items[] = {{socket_, 0, ZMQ_POLLIN, 0}, {nullptr, stop_.fd(), ZMQ_POLLIN, 0}};
    // No deadline: the stop event ends the wait.
    if (zmq_poll(items, 2, -1) < 0 && zmq_errno() != EINTR) return;
    if ((items[1].revents & ZMQ_POLLIN) != 0) return;
    if ((items[0].revents & ZMQ_POLLIN) != 0) answer();
  }
}

void Authenticator::answer() {
  std::vector<std::string> request;
  bool more = true;
  while (more) {
    Frame frame;
    if (zmq_msg_recv(FrameAccess::message(frame), socket_, ZMQ_DONTWAIT) < 0) return;
    more = zmq_msg_more(FrameAccess::message(frame)) != 0;
    if (request.size() < kMaxZapFrames) request.emplace_back(frame.text());
  }
  const std::string user = admit(request);
  if (user.empty()) note_refusal(request);
  send_text(socket_, "1.0", /*more=*/true);
  send_text(socket_, request.size() > kRequestId ? request[kRequestId] : "", /*more=*/true);
  send_text(socket_, user.empty() ? "400" : "200", /*more=*/true);
  send_text(socket_, user.empty() ? "key not allowed here" : "OK", /*more=*/true);
  send_text(socket_, user, /*more=*/true);
  send_text(socket_, "", /*more=*/false);
}

std::string Authenticator::admit(const std::vector<std::string>& request) {
  if (request.size() != kCount || request[kVersion] != "1.0") return "";
  if (request[kMechanism] != "CURVE" || request[kKey].size() != kKeyBytes) return "";
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(request[kKey]);
  if (peer == peers_.end() || !domain_allows(request[kDomain], peer->second.role)) return "";
  return str_cat(to_string(peer->second.role), ":", peer->second.name);
}

void Authenticator::note_refusal(const std::vector<std::string>& request) {
  // Powers of two: a peer that knocks for ever must not fill the log.
  ++refused_;
  if ((refused_ & (refused_ - 1)) != 0) return;
  log_warning(str_cat("refused a key (", refused_, " refusals so far), from ",
                      request.size() > kAddress ? quoted(request[kAddress]) : "?"));
}

}  // namespace brigade::net
