// SPDX-License-Identifier: Apache-2.0
#include "common/net/poller.h"

#include <vector>

#include "common/net/disconnect_watch.h"
#include "common/net/zmq_access.h"

namespace brigade::net {

struct Poller::Impl {
  std::vector<zmq_pollitem_t> items;
};

Poller::Poller() : impl_(std::make_unique<Impl>()) {}
Poller::~Poller() = default;

std::size_t Poller::add(const Socket& socket) {
  impl_->items.push_back({SocketAccess::handle(socket), 0, ZMQ_POLLIN, 0});
  return impl_->items.size() - 1;
}

std::size_t Poller::add(const DisconnectWatch& watch) {
  impl_->items.push_back({watch.events_, 0, ZMQ_POLLIN, 0});
  return impl_->items.size() - 1;
}

std::size_t Poller::add_fd(int fd) {
  impl_->items.push_back({nullptr, fd, ZMQ_POLLIN, 0});
  return impl_->items.size() - 1;
}

void Poller::clear() {
  impl_->items.clear();
}

Result<bool> Poller::wait(TimePoint deadline) {
  while (true) {
    const int count = zmq_poll(impl_->items.data(), static_cast<int>(impl_->items.size()),
                               poll_timeout_ms(deadline));
    if (count > 0) return true;
    if (count < 0 && zmq_errno() != EINTR) return internal_error(str_cat("poll: ", zmq_error()));
    if (Clock::now() >= deadline) return false;
  }
}

bool Poller::readable(std::size_t index) const {
  return (impl_->items[index].revents & (ZMQ_POLLIN | ZMQ_POLLERR)) != 0;
}

}  // namespace brigade::net
