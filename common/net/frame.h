// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace brigade::net {

/// The bytes of one part of a message, by reference count: share() of a frame costs nothing
/// whatever its size, so one encoded command goes to every rank of a replica. A frame and its
/// shares may be used by one thread at a time each; making a share touches the original. Bytes need
/// not be aligned.
class Frame final {
 public:
  /// Empty.
  Frame();
  /// A copy of the bytes.
  explicit Frame(std::span<const std::byte> bytes);
  explicit Frame(std::string_view text);
  ~Frame();
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  [[nodiscard]] Frame share();
  [[nodiscard]] std::span<const std::byte> bytes() const;
  /// To fill a frame made with Frame::of_size before it is sent or shared.
  [[nodiscard]] std::span<std::byte> writable_bytes();
  [[nodiscard]] static Frame of_size(std::size_t size);
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] std::size_t size() const { return bytes().size(); }

 private:
  friend struct FrameAccess;
  /// Room for a zmq_msg_t, which this header does not show.
  alignas(std::max_align_t) std::array<unsigned char, 64> storage_{};
};

}  // namespace brigade::net
