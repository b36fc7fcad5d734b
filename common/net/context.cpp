// SPDX-License-Identifier: Apache-2.0
#include "common/net/context.h"

#include "common/base/strings.h"
#include "common/net/authenticator.h"
#include "common/net/zmq_access.h"

namespace brigade::net {

Context::Context() : handle_(zmq_ctx_new()) {
  INVARIANT(handle_ != nullptr) << "no ZeroMQ context: " << zmq_error();
  zmq_ctx_set(handle_, ZMQ_MAX_SOCKETS, 4096);
}

Context::~Context() {
  authenticator_.reset();
  zmq_ctx_term(handle_);
}

Status Context::allow_peers(std::vector<AllowedPeer> peers) {
  for (const AllowedPeer& peer : peers)
    RETURN_IF_ERROR(check_public_key(peer.public_key, str_cat("key of ", quoted(peer.name))));
  if (authenticator_ == nullptr) {
    ASSIGN_OR_RETURN(authenticator_, Authenticator::start(handle_));
  }
  authenticator_->allow(std::move(peers));
  return {};
}

}  // namespace brigade::net
