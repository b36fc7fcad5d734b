// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/base/status.h"
#include "common/base/strings.h"

namespace brigade::wire {

/// A sequence frame that is never the next number: who gets it gives the link up and says Hello
/// anew. A router answers with it when it does not know the sender.
inline constexpr std::uint64_t kBrokenSequence = ~std::uint64_t{0};

/// Sequence numbers of one direction of a worker link, eight little-endian bytes in a frame before
/// each message, from 0 for each connection (a worker's new incarnation is a new connection).
/// ZeroMQ drops what was queued when a TCP connection is lost and joined again behind our back: the
/// gap shows it.
class SequenceOut final {
 public:
  [[nodiscard]] std::array<std::byte, 8> next() {
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), &next_, sizeof next_);
    ++next_;
    return bytes;
  }

 private:
  std::uint64_t next_ = 0;
};

class SequenceIn final {
 public:
  /// kDataLoss when the frame is not the next number: the link must be given up.
  [[nodiscard]] Status accept(std::span<const std::byte> frame) {
    std::uint64_t number = 0;
    if (frame.size() != sizeof number) return data_loss("a sequence frame has 8 bytes");
    std::memcpy(&number, frame.data(), sizeof number);
    if (number != next_) return data_loss(str_cat("message ", next_, " is missing: got ", number));
    ++next_;
    return {};
  }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace brigade::wire
