// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"

namespace brigade::worker {

/// What a rank publishes beside its data, so that ranks which do not make the same call find out.
struct CallTag {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;  ///< of this piece, in the publisher's slot
  /// What must be equal on all ranks: the whole call's size, or the value agreed on.
  std::uint64_t value = 0;
};

/// Lives in shared memory, starts as zeros. One a rank, on cache lines of its own.
struct alignas(64) RankControl {
  std::atomic<std::uint32_t> attached;  ///< 1 once the rank is here
  std::atomic<std::uint32_t> sequence;  ///< futex: the last call published; wraps
  /// Ranks asleep on `sequence`; stays too high when one is killed: harmless.
  std::atomic<std::uint32_t> waiters;
  CallTag tags[2];
};

struct alignas(64) GroupControl {
  /// Of the first rank: hash of magic, epoch, size and slot bytes.
  std::atomic<std::uint64_t> layout;
  std::atomic<std::uint32_t> num_attached;  ///< futex
  std::atomic<std::uint32_t> aborted;       ///< the abort word
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free);

/// A mapped shared-memory object: GroupControl, RankControl[size], then slots
/// [size][2][slot_bytes].
class SharedSegment final {
 public:
  /// Opens or creates; whoever comes first creates, since zeros are a valid start.
  static Result<std::unique_ptr<SharedSegment>> open(const std::string& name, int size,
                                                     std::size_t slot_bytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  /// Takes the name away; what is mapped lives on. Once only, and never an object that another
  /// group made since.
  void unlink() noexcept;

  [[nodiscard]] GroupControl& group() const { return *group_; }
  [[nodiscard]] RankControl& rank(int r) const { return ranks_[r]; }
  [[nodiscard]] std::byte* slot(int r, std::uint32_t call) const {
    return slots_ + (static_cast<std::size_t>(r) * 2 + (call & 1)) * slot_bytes_;
  }

 private:
  SharedSegment() = default;

  std::string name_;
  int fd_ = -1;
  bool linked_ = false;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t slot_bytes_ = 0;
  GroupControl* group_ = nullptr;
  RankControl* ranks_ = nullptr;  ///< [size]
  std::byte* slots_ = nullptr;    ///< [size][2][slot_bytes]
};

/// Sleeps while `word` is `expected`, at most until `deadline`; may return early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, TimePoint deadline);
void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace brigade::worker
