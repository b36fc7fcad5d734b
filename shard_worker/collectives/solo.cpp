// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/collectives/solo.h"

#include <algorithm>
#include <atomic>

#include "common/base/check.h"

namespace brigade::worker {
namespace {

class Solo final : public Collective {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }

  Status all_reduce(std::span<float> /*data*/, TimePoint /*deadline*/) override {
    return aborted();
  }

  Status gather(std::span<const float> part, std::span<float> all,
                TimePoint /*deadline*/) override {
    RETURN_IF_ERROR(aborted());
    INVARIANT_EQ(part.size(), all.size());
    std::copy(part.begin(), part.end(), all.begin());
    return {};
  }

  Status broadcast(std::span<std::byte> /*data*/, TimePoint /*deadline*/) override {
    return aborted();
  }

  Status agree(std::uint64_t /*value*/, TimePoint /*deadline*/) override { return aborted(); }

  void abort() noexcept override { aborted_.store(true, std::memory_order_relaxed); }

 private:
  [[nodiscard]] Status aborted() const {
    if (!aborted_.load(std::memory_order_relaxed)) return {};
    return cancelled("the group was aborted");
  }

  std::atomic<bool> aborted_{false};
};

}  // namespace

std::unique_ptr<Collective> make_solo_collective() {
  return std::make_unique<Solo>();
}

}  // namespace brigade::worker
