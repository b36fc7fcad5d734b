// SPDX-License-Identifier: Apache-2.0
#include "common/net/context.h"

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
  if (authenticator_ != nullptr) return failed_precondition("the context has its peers already");
  ASSIGN_OR_RETURN(authenticator_, Authenticator::start(handle_, std::move(peers)));
  return {};
}

}  // namespace brigade::net
