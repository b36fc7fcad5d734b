// SPDX-License-Identifier: Apache-2.0
#include "tests/support/thread_group.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "common/base/check.h"

namespace brigade::test {
namespace {

struct Shared {
  explicit Shared(int num_ranks) : size(num_ranks), slots(static_cast<std::size_t>(num_ranks)) {}

  struct Slot {
    void* data = nullptr;
    std::size_t bytes = 0;
    std::uint64_t value = 0;
  };

  /// Returns when all ranks have arrived: what they wrote into their slots before is then visible
  /// to all.
  Status barrier(TimePoint deadline) {
    std::unique_lock lock(mutex);
    if (!broken.ok()) return broken;
    const std::uint64_t mine = generation;
    if (++arrived == size) {
      arrived = 0;
      ++generation;
      lock.unlock();
      changed.notify_all();
      return {};
    }
    const bool woken =
        changed.wait_until(lock, deadline, [&] { return generation != mine || !broken.ok(); });
    if (generation != mine) return {};
    if (!woken) broken = deadline_exceeded("a rank did not come to the barrier");
    changed.notify_all();
    return broken;
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  std::uint64_t generation = 0;
  Status broken;
  std::vector<Slot> slots;
};

class ThreadRank final : public worker::Collective {
 public:
  ThreadRank(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return shared_->size; }

  Status all_reduce(std::span<float> data, TimePoint deadline) override {
    RETURN_IF_ERROR(publish(data.data(), data.size_bytes(), 0, deadline));
    sum_.assign(data.size(), 0.0F);
    for (const Shared::Slot& slot : shared_->slots) {
      INVARIANT_EQ(slot.bytes, data.size_bytes());
      const auto* part = static_cast<const float*>(slot.data);
      for (std::size_t i = 0; i < sum_.size(); ++i)
        sum_[i] += part[i];
    }
    RETURN_IF_ERROR(shared_->barrier(deadline));  // all have read
    std::copy(sum_.begin(), sum_.end(), data.begin());
    return {};
  }

  Status gather(std::span<const float> part, std::span<float> all, TimePoint deadline) override {
    RETURN_IF_ERROR(publish(const_cast<float*>(part.data()), part.size_bytes(), 0, deadline));
    if (rank_ == 0) {
      auto* to = reinterpret_cast<std::byte*>(all.data());
      for (const Shared::Slot& slot : shared_->slots) {
        std::memcpy(to, slot.data, slot.bytes);
        to += slot.bytes;
      }
      INVARIANT(to == reinterpret_cast<std::byte*>(all.data() + all.size()));
    }
    return shared_->barrier(deadline);
  }

  Status broadcast(std::span<std::byte> data, TimePoint deadline) override {
    RETURN_IF_ERROR(publish(data.data(), data.size(), 0, deadline));
    if (rank_ != 0) std::memcpy(data.data(), shared_->slots[0].data, data.size());
    return shared_->barrier(deadline);
  }

  Status agree(std::uint64_t value, TimePoint deadline) override {
    RETURN_IF_ERROR(publish(nullptr, 0, value, deadline));
    bool same = true;
    for (const Shared::Slot& slot : shared_->slots)
      same = same && slot.value == value;
    RETURN_IF_ERROR(shared_->barrier(deadline));
    return same ? Status() : data_loss("ranks disagree");
  }

  void abort() noexcept override {
    std::lock_guard lock(shared_->mutex);
    if (shared_->broken.ok()) shared_->broken = cancelled("aborted");
    shared_->changed.notify_all();
  }

 private:
  Status publish(void* data, std::size_t bytes, std::uint64_t value, TimePoint deadline) {
    shared_->slots[static_cast<std::size_t>(rank_)] = {data, bytes, value};
    return shared_->barrier(deadline);
  }

  std::shared_ptr<Shared> shared_;
  const int rank_;
  std::vector<float> sum_;
};

}  // namespace

std::vector<std::unique_ptr<worker::Collective>> make_thread_group(int size) {
  auto shared = std::make_shared<Shared>(size);
  std::vector<std::unique_ptr<worker::Collective>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<ThreadRank>(shared, rank));
  }
  return ranks;
}

}  // namespace brigade::test
