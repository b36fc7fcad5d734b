// SPDX-License-Identifier: Apache-2.0
#include "common/net/frame.h"

#include <cstring>

#include "common/base/check.h"
#include "common/net/zmq_access.h"

namespace brigade::net {

static_assert(sizeof(zmq_msg_t) == 64 && alignof(zmq_msg_t) <= alignof(std::max_align_t));

Frame::Frame() {
  zmq_msg_init(FrameAccess::message(*this));
}

Frame::Frame(std::span<const std::byte> bytes) {
  INVARIANT_EQ(zmq_msg_init_size(FrameAccess::message(*this), bytes.size()), 0);
  if (!bytes.empty()) {
    std::memcpy(zmq_msg_data(FrameAccess::message(*this)), bytes.data(), bytes.size());
  }
}

Frame::Frame(std::string_view text) : Frame(std::as_bytes(std::span(text.data(), text.size()))) {}

Frame::~Frame() {
  zmq_msg_close(FrameAccess::message(*this));
}

Frame::Frame(Frame&& other) noexcept : Frame() {
  zmq_msg_move(FrameAccess::message(*this), FrameAccess::message(other));
}

Frame& Frame::operator=(Frame&& other) noexcept {
  zmq_msg_move(FrameAccess::message(*this), FrameAccess::message(other));
  return *this;
}

Frame Frame::share() {
  Frame copy;
  zmq_msg_copy(FrameAccess::message(copy), FrameAccess::message(*this));
  return copy;
}

std::span<const std::byte> Frame::bytes() const {
  zmq_msg_t* message = FrameAccess::message(*this);
  return {static_cast<const std::byte*>(zmq_msg_data(message)), zmq_msg_size(message)};
}

std::span<std::byte> Frame::writable_bytes() {
  zmq_msg_t* message = FrameAccess::message(*this);
  return {static_cast<std::byte*>(zmq_msg_data(message)), zmq_msg_size(message)};
}

Frame Frame::of_size(std::size_t size) {
  Frame frame;
  INVARIANT_EQ(zmq_msg_init_size(FrameAccess::message(frame), size), 0);
  return frame;
}

std::string_view Frame::text() const {
  const auto view = bytes();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

}  // namespace brigade::net
