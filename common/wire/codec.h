// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/base/status.h"
#include "common/wire/client.h"
#include "common/wire/messages.h"
#include "common/wire/stage_link.h"

/// Plain values to verified FlatBuffers and back: the only place that sees generated code.
namespace brigade::wire {

/// Largest message of each kind. Steps and client messages carry lists of tokens; everything else
/// is control.
inline constexpr std::size_t kMaxControlBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxStepBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxClientBytes = std::size_t{4} << 20;

/// Encodes into one buffer that is reused: the bytes live until the next encode() or the encoder's
/// end. Not thread-safe: one encoder a thread. The receiver refuses what is over its bound, so
/// senders check the size (net::Socket does).
class Encoder final {
 public:
  Encoder();
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  std::span<const std::byte> encode(const FromWorker& message);
  std::span<const std::byte> encode(const ToWorker& message);
  std::span<const std::byte> encode(const StageLinkMessage& message);
  std::span<const std::byte> encode(const ToRouter& message);
  std::span<const std::byte> encode(const FromRouter& message);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Each checks size, structure (flatbuffers::Verifier, max_depth 32, max_tables 1024), then
/// meaning: enums in range, vectors that belong together of equal length, intervals that rise and
/// end where their target does, numbers finite where they must be. kDataLoss naming the field
/// otherwise. Bytes need no alignment. Time and memory are linear in the size of the message.
[[nodiscard]] Result<FromWorker> decode_from_worker(std::span<const std::byte> bytes);
[[nodiscard]] Result<ToWorker> decode_to_worker(std::span<const std::byte> bytes);
[[nodiscard]] Result<StageLinkMessage> decode_stage_link(std::span<const std::byte> bytes);
[[nodiscard]] Result<ToRouter> decode_to_router(std::span<const std::byte> bytes);
[[nodiscard]] Result<FromRouter> decode_from_router(std::span<const std::byte> bytes);

}  // namespace brigade::wire
