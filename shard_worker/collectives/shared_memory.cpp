// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/collectives/shared_memory.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "common/base/strings.h"
#include "shard_worker/collectives/shared_segment.h"

namespace brigade::worker {
namespace {

/// The longest sleep without a look at the abort word.
constexpr Duration kSlice = std::chrono::milliseconds(50);
constexpr int kSpinTurns = 2000;  ///< about 50 us
constexpr int kMaxRanks = 64;
constexpr std::uint64_t kLayoutMagic = 0x6272676173686d31U;  // "brgashm1"

enum CallKind : std::uint32_t { kAllReduce = 1, kGather, kBroadcast, kAgree };

constexpr std::string_view kCallNames[] = {"no call", "all_reduce", "gather", "broadcast", "agree"};

std::string_view call_name(std::uint32_t kind) {
  return kind < std::size(kCallNames) ? kCallNames[kind] : "unknown call";
}

/// out[i] = ((slots[0][i] + slots[1][i]) + slots[2][i]) + ..., blocked so that the compiler adds in
/// vectors.
void sum_in_rank_order(std::span<const float* const> slots, float* out, std::size_t count) {
  constexpr std::size_t kBlock = 256;
  alignas(64) float sum[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    std::memcpy(sum, slots[0] + begin, length * sizeof(float));
    for (const float* slot : slots.subspan(1)) {
      const float* part = slot + begin;
      if (length == kBlock) {
        for (std::size_t i = 0; i < kBlock; ++i)
          sum[i] += part[i];
      } else {
        for (std::size_t i = 0; i < length; ++i)
          sum[i] += part[i];
      }
    }
    std::memcpy(out + begin, sum, length * sizeof(float));
  }
}

class SharedMemoryGroup final : public Collective {
 public:
  SharedMemoryGroup(const SharedMemoryOptions& options, std::unique_ptr<SharedSegment> segment)
      : options_(options),
        segment_(std::move(segment)),
        part_bytes_(static_cast<std::size_t>(options.size)) {
    for (int r = 0; r < options_.size; ++r) {
      if (r != options_.rank) peers_.push_back(r);
    }
  }

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int size() const override { return options_.size; }

  Status attach(TimePoint deadline, const std::stop_token& stop);
  Status all_reduce(std::span<float> data, TimePoint deadline) override;
  Status gather(std::span<const float> part, std::span<float> all, TimePoint deadline) override;
  Status broadcast(std::span<std::byte> data, TimePoint deadline) override;
  Status agree(std::uint64_t value, TimePoint deadline) override;
  void abort() noexcept override;

 private:
  [[nodiscard]] std::uint64_t layout() const;
  [[nodiscard]] bool reached(int peer, std::uint32_t call) const {
    const std::uint32_t at = segment_->rank(peer).sequence.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(at - call) >=
           0;  // counters wrap; ranks are at most one call apart
  }
  Status wait_for(int peer, std::uint32_t call, TimePoint deadline);
  Status sleep_for(int peer, std::uint32_t call, TimePoint deadline);
  Status wait_for_peers(std::uint32_t call, TimePoint deadline);
  Status publish(CallKind kind, std::span<const std::byte> piece, std::uint64_t value,
                 TimePoint deadline);
  Status check_tag(int peer, CallKind kind) const;
  /// Remembers the first error and tells the peers, which must not wait for a rank that has given
  /// up.
  Status fail(Status status);

  Status all_reduce_piece(std::span<float> piece, std::uint64_t total, TimePoint deadline);
  Status gather_first(std::span<const std::byte> part, TimePoint deadline);
  Status take_pieces(std::size_t offset, std::span<float> all, TimePoint deadline);
  Status do_all_reduce(std::span<float> data, TimePoint deadline);
  Status do_gather(std::span<const float> part, std::span<float> all, TimePoint deadline);
  Status do_broadcast(std::span<std::byte> data, TimePoint deadline);
  Status do_agree(std::uint64_t value, TimePoint deadline);

  const SharedMemoryOptions options_;
  const std::unique_ptr<SharedSegment> segment_;
  std::vector<int> peers_;               ///< the other ranks
  std::vector<std::size_t> part_bytes_;  ///< [size] of the gather under way
  std::uint32_t call_ = 0;               ///< the last call published
  CallTag tag_;                          ///< its tag
  Status failed_;
};

std::uint64_t SharedMemoryGroup::layout() const {
  const auto size = static_cast<std::uint64_t>(options_.size);
  return random_bits(kLayoutMagic, options_.epoch, (size << 32) ^ options_.slot_bytes) | 1;
}

Status SharedMemoryGroup::attach(TimePoint deadline, const std::stop_token& stop) {
  GroupControl& group = segment_->group();
  std::uint64_t found = 0;
  if (!group.layout.compare_exchange_strong(found, layout()) && found != layout()) {
    return data_loss(str_cat("group ", options_.group_name,
                             " was opened with another epoch, size or slot size than ",
                             options_.epoch, ", ", options_.size, ", ", options_.slot_bytes));
  }
  if (segment_->rank(options_.rank).attached.exchange(1) != 0) {
    return failed_precondition(
        str_cat("rank ", options_.rank, " of group ", options_.group_name, " is taken"));
  }
  const auto size = static_cast<std::uint32_t>(options_.size);
  group.num_attached.fetch_add(1);
  futex_wake_all(group.num_attached);
  for (;;) {
    const std::uint32_t here = group.num_attached.load();
    if (here >= size) break;
    if (stop.stop_requested()) return cancelled("attaching to the group was stopped");
    const TimePoint now = Clock::now();
    if (now >= deadline) {
      std::string missing;
      for (int peer : peers_) {
        if (segment_->rank(peer).attached.load() == 0) missing += str_cat(' ', peer);
      }
      return deadline_exceeded(
          str_cat("group ", options_.group_name, ": these ranks did not attach:", missing));
    }
    futex_wait(group.num_attached, here, std::min(deadline, now + kSlice));
  }
  segment_->unlink();
  return {};
}

void SharedMemoryGroup::abort() noexcept {
  segment_->group().aborted.store(1);
  for (int r = 0; r < options_.size; ++r)
    futex_wake_all(segment_->rank(r).sequence);
}

Status SharedMemoryGroup::fail(Status status) {
  if (!status.ok() && failed_.ok()) {
    failed_ = status;
    abort();
  }
  return status;
}

Status SharedMemoryGroup::wait_for(int peer, std::uint32_t call, TimePoint deadline) {
  if (reached(peer, call)) return {};
  if (options_.spin) {
    for (int turn = 0; turn < kSpinTurns; ++turn) {
      __builtin_ia32_pause();
      if (reached(peer, call)) return {};
    }
  }
  return sleep_for(peer, call, deadline);
}

Status SharedMemoryGroup::sleep_for(int peer, std::uint32_t call, TimePoint deadline) {
  RankControl& control = segment_->rank(peer);
  for (;;) {
    // First: a rank that gives up after everyone has published must not take the call's outcome
    // from the others.
    if (reached(peer, call)) return {};
    if (segment_->group().aborted.load() != 0) {
      return cancelled(str_cat("group ", options_.group_name, " was aborted"));
    }
    const TimePoint now = Clock::now();
    if (now >= deadline) {
      return deadline_exceeded(str_cat("rank ", peer, " did not come to call ", call, " (",
                                       call_name(tag_.kind), ", ", tag_.bytes, " bytes)"));
    }
    // Announced before the last look: the peer either sees the waiter after it publishes, or we see
    // what it published.
    control.waiters.fetch_add(1);
    const std::uint32_t at = control.sequence.load();
    if (static_cast<std::int32_t>(at - call) < 0 && segment_->group().aborted.load() == 0) {
      futex_wait(control.sequence, at, std::min(deadline, now + kSlice));
    }
    control.waiters.fetch_sub(1);
  }
}

Status SharedMemoryGroup::wait_for_peers(std::uint32_t call, TimePoint deadline) {
  for (int peer : peers_)
    RETURN_IF_ERROR(wait_for(peer, call, deadline));
  return {};
}

Status SharedMemoryGroup::publish(CallKind kind, std::span<const std::byte> piece,
                                  std::uint64_t value, TimePoint deadline) {
  INVARIANT_LE(piece.size(), options_.slot_bytes);
  if (segment_->group().aborted.load() != 0) {
    return cancelled(str_cat("group ", options_.group_name, " was aborted"));
  }
  RETURN_IF_ERROR(
      wait_for_peers(call_, deadline));  // nobody reads call_ - 1 any more: its slot is free
  ++call_;
  tag_ = {.kind = kind, .bytes = static_cast<std::uint32_t>(piece.size()), .value = value};
  RankControl& own = segment_->rank(options_.rank);
  if (!piece.empty()) {
    std::memcpy(segment_->slot(options_.rank, call_), piece.data(), piece.size());
  }
  own.tags[call_ & 1] = tag_;
  own.sequence.store(call_);
  if (own.waiters.load() != 0) futex_wake_all(own.sequence);
  return {};
}

Status SharedMemoryGroup::check_tag(int peer, CallKind kind) const {
  const CallTag& tag = segment_->rank(peer).tags[call_ & 1];
  const bool same_size = kind == kGather || kind == kAgree || tag.value == tag_.value;
  if (tag.kind == kind && same_size && tag.bytes <= options_.slot_bytes) return {};
  return data_loss(str_cat("rank ", peer, " makes call ", call_, " as ", call_name(tag.kind),
                           " of ", tag.value, ", rank ", options_.rank, " as ", call_name(kind),
                           " of ", tag_.value));
}

Status SharedMemoryGroup::all_reduce_piece(std::span<float> piece, std::uint64_t total,
                                           TimePoint deadline) {
  RETURN_IF_ERROR(publish(kAllReduce, std::as_bytes(piece), total, deadline));
  const float* slots[kMaxRanks];
  for (int r = 0; r < options_.size; ++r) {
    slots[r] = reinterpret_cast<const float*>(segment_->slot(r, call_));
  }
  for (int peer : peers_) {
    RETURN_IF_ERROR(wait_for(peer, call_, deadline));
    RETURN_IF_ERROR(check_tag(peer, kAllReduce));
  }
  sum_in_rank_order({slots, static_cast<std::size_t>(options_.size)}, piece.data(), piece.size());
  return {};
}

Status SharedMemoryGroup::do_all_reduce(std::span<float> data, TimePoint deadline) {
  const std::size_t slot_floats = options_.slot_bytes / sizeof(float);
  const std::size_t total = data.size();
  while (!data.empty()) {
    const std::size_t length = std::min(slot_floats, data.size());
    RETURN_IF_ERROR(all_reduce_piece(data.first(length), total, deadline));
    data = data.subspan(length);
  }
  return {};
}

/// Publishes the first piece with the whole part's size, and learns everyone's: the longest part
/// says how many calls the gather takes.
Status SharedMemoryGroup::gather_first(std::span<const std::byte> part, TimePoint deadline) {
  const auto piece = part.first(std::min(options_.slot_bytes, part.size()));
  RETURN_IF_ERROR(publish(kGather, piece, part.size(), deadline));
  for (int peer : peers_) {
    RETURN_IF_ERROR(wait_for(peer, call_, deadline));
    RETURN_IF_ERROR(check_tag(peer, kGather));
    part_bytes_[static_cast<std::size_t>(peer)] = segment_->rank(peer).tags[call_ & 1].value;
  }
  part_bytes_[static_cast<std::size_t>(options_.rank)] = part.size();
  return {};
}

/// Rank 0: copies every part's piece at `offset` from the slots to its place.
Status SharedMemoryGroup::take_pieces(std::size_t offset, std::span<float> all,
                                      TimePoint deadline) {
  auto* out = reinterpret_cast<std::byte*>(all.data());
  for (int r = 0; r < options_.size; ++r) {
    const std::size_t bytes = part_bytes_[static_cast<std::size_t>(r)];
    if (r != options_.rank) {
      RETURN_IF_ERROR(wait_for(r, call_, deadline));
      RETURN_IF_ERROR(check_tag(r, kGather));
    }
    if (offset < bytes) {
      std::memcpy(out + offset, segment_->slot(r, call_),
                  std::min(options_.slot_bytes, bytes - offset));
    }
    out += bytes;
  }
  return {};
}

Status SharedMemoryGroup::do_gather(std::span<const float> part, std::span<float> all,
                                    TimePoint deadline) {
  const std::span<const std::byte> bytes = std::as_bytes(part);
  RETURN_IF_ERROR(gather_first(bytes, deadline));
  std::size_t longest = 0;
  std::size_t total = 0;
  for (std::size_t part_bytes : part_bytes_) {
    longest = std::max(longest, part_bytes);
    if (__builtin_add_overflow(total, part_bytes, &total))
      return data_loss("gather: sizes overflow");
  }
  if (options_.rank == 0 && total != all.size_bytes()) {
    return data_loss(str_cat("gather: the parts have ", total, " bytes, rank 0 has room for ",
                             all.size_bytes()));
  }
  if (options_.rank == 0) RETURN_IF_ERROR(take_pieces(0, all, deadline));
  for (std::size_t offset = options_.slot_bytes; offset < longest; offset += options_.slot_bytes) {
    const auto rest = bytes.subspan(std::min(offset, bytes.size()));
    RETURN_IF_ERROR(publish(kGather, rest.first(std::min(options_.slot_bytes, rest.size())),
                            bytes.size(), deadline));
    if (options_.rank == 0) RETURN_IF_ERROR(take_pieces(offset, all, deadline));
  }
  return {};
}

Status SharedMemoryGroup::do_broadcast(std::span<std::byte> data, TimePoint deadline) {
  const std::size_t total = data.size();
  while (!data.empty()) {
    const auto piece = data.first(std::min(options_.slot_bytes, data.size()));
    if (options_.rank == 0) {
      RETURN_IF_ERROR(publish(kBroadcast, piece, total, deadline));
    } else {
      RETURN_IF_ERROR(publish(kBroadcast, {}, total, deadline));
      RETURN_IF_ERROR(wait_for(/*peer=*/0, call_, deadline));
      RETURN_IF_ERROR(check_tag(/*peer=*/0, kBroadcast));
      std::memcpy(piece.data(), segment_->slot(/*r=*/0, call_), piece.size());
    }
    data = data.subspan(piece.size());
  }
  return {};
}

Status SharedMemoryGroup::do_agree(std::uint64_t value, TimePoint deadline) {
  RETURN_IF_ERROR(publish(kAgree, {}, value, deadline));
  RETURN_IF_ERROR(wait_for_peers(call_, deadline));
  for (int peer : peers_) {
    RETURN_IF_ERROR(check_tag(peer, kAgree));
    const std::uint64_t other = segment_->rank(peer).tags[call_ & 1].value;
    if (other != value) {
      return data_loss(str_cat("ranks disagree: rank ", options_.rank, " has ", value, ", rank ",
                               peer, " has ", other));
    }
  }
  return {};
}

Status SharedMemoryGroup::all_reduce(std::span<float> data, TimePoint deadline) {
  return failed_.ok() ? fail(do_all_reduce(data, deadline)) : failed_;
}

Status SharedMemoryGroup::gather(std::span<const float> part, std::span<float> all,
                                 TimePoint deadline) {
  return failed_.ok() ? fail(do_gather(part, all, deadline)) : failed_;
}

Status SharedMemoryGroup::broadcast(std::span<std::byte> data, TimePoint deadline) {
  return failed_.ok() ? fail(do_broadcast(data, deadline)) : failed_;
}

Status SharedMemoryGroup::agree(std::uint64_t value, TimePoint deadline) {
  return failed_.ok() ? fail(do_agree(value, deadline)) : failed_;
}

Status check_options(const SharedMemoryOptions& options) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  const std::string& name = options.group_name;
  if (name.empty() || name.size() > 128 || !std::all_of(name.begin(), name.end(), plain)) {
    return invalid_argument(
        str_cat("group name ", quoted(name), " is not 1 to 128 letters, digits, '-', '_', '.'"));
  }
  if (options.size < 1 || options.size > kMaxRanks || options.rank < 0 ||
      options.rank >= options.size) {
    return invalid_argument(str_cat("rank ", options.rank, " of a group of ", options.size,
                                    " (at most ", kMaxRanks, ')'));
  }
  const std::size_t most = std::numeric_limits<std::uint32_t>::max() / 2;
  if (options.slot_bytes == 0 || options.slot_bytes % 64 != 0 || options.slot_bytes > most) {
    return invalid_argument(str_cat("slots of ", options.slot_bytes, " bytes"));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Collective>> attach_shared_memory(const SharedMemoryOptions& options,
                                                         TimePoint deadline,
                                                         const std::stop_token& stop) {
  RETURN_IF_ERROR(check_options(options));
  ASSIGN_OR_RETURN(auto segment, SharedSegment::open("/brigade-" + options.group_name, options.size,
                                                     options.slot_bytes));
  auto group = std::make_unique<SharedMemoryGroup>(options, std::move(segment));
  RETURN_IF_ERROR(group->attach(deadline, stop));
  return std::unique_ptr<Collective>(std::move(group));
}

}  // namespace brigade::worker
