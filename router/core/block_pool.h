// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "router/core/id_set.h"
#include "router/core/prefix_cache.h"
#include "router/core/types.h"

namespace brigade::router {

/// The KV blocks of one replica (the same number on each of its ranks), and their names. Each is in
/// one of four states:
///
///     free --allocate--> owned by 1..n holders --last release--> in flight --step_ended--> cached
///      ^                  ^                                      |                        |  |
///      |                  '--share-------------------------------+------------------------'  |
///      '-------------------------------------------- no name ----'------ evicted -------<----'
///
/// A block without holders may still be touched by steps up to the last one of any holder, so it
/// becomes free or cached only when that step has ended on all stages. A block with a name can be
/// found and shared in each state but free. Cached blocks are taken, least recently released first,
/// when no free one is left; a holder releases the end of its table first, so that prefixes outlive
/// what follows them.
///
/// A name may be given before the block is filled: it then has a writer who is to fill it, and who
/// shares it must wait.
class BlockPool final {
 public:
  /// `keep_cached`: blocks outlive their holders under their names.
  BlockPool(std::uint64_t num_blocks, bool keep_cached);

  /// Appends `count` blocks with one holder to `blocks`: free ones first, lowest ids first, then
  /// cached ones. False, and nothing taken, when there are too few.
  [[nodiscard]] bool allocate(std::uint64_t count, std::vector<std::uint32_t>& blocks);
  /// One holder more. The block must be owned or have a name.
  void share(std::uint32_t block);
  /// One holder less for each of `blocks`, which is cleared. `step`: the last step in flight in
  /// which this holder touches them; 0: none.
  void release(std::vector<std::uint32_t>& blocks, std::uint64_t step);
  void step_ended(std::uint64_t step);

  [[nodiscard]] std::optional<std::uint32_t> find(const BlockHash& hash,
                                                  std::span<const std::int32_t> tokens) const {
    return names_.find(hash, tokens);
  }
  /// Gives an owned block a name, before it is filled; `writer` is to fill it. False when another
  /// block has that name or this one has one.
  bool promise(std::uint32_t block, RequestId writer, const BlockHash& hash,
               std::span<const std::int32_t> tokens);
  /// All its positions are in steps that were issued.
  void set_filled(std::uint32_t block);
  /// Who shares an unfilled block fills it when its writer has gone.
  void set_writer(std::uint32_t block, std::optional<RequestId> writer);
  [[nodiscard]] std::optional<RequestId> writer(std::uint32_t block) const {
    return blocks_[block].writer;
  }
  [[nodiscard]] bool is_filled(std::uint32_t block) const { return blocks_[block].filled; }

  [[nodiscard]] std::uint64_t num_blocks() const { return blocks_.size(); }
  [[nodiscard]] std::uint64_t num_free() const { return free_.count(); }
  [[nodiscard]] std::uint64_t num_cached() const { return num_cached_; }
  [[nodiscard]] std::uint64_t num_in_flight() const { return num_in_flight_; }
  [[nodiscard]] std::uint64_t num_owned() const {
    return num_blocks() - num_available() - num_in_flight();
  }
  /// What allocate() can take now.
  [[nodiscard]] std::uint64_t num_available() const { return num_free() + num_cached(); }
  [[nodiscard]] bool is_cached(std::uint32_t block) const {
    return blocks_[block].state == State::kCached;
  }
  [[nodiscard]] std::uint32_t num_holders(std::uint32_t block) const {
    return blocks_[block].num_holders;
  }

  /// Every block in exactly one state, counts that add up. A pass over all blocks.
  void audit() const;

 private:
  enum class State : std::uint8_t { kFree, kOwned, kInFlight, kCached };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Block {
    State state = State::kFree;
    bool filled = false;  ///< has a name, and what it says is there
    std::uint32_t num_holders = 0;
    std::uint32_t older = kNone;  ///< neighbours in the list of cached ones
    std::uint32_t newer = kNone;
    std::uint64_t busy_until = 0;  ///< last step in which a former holder touches it
    std::optional<RequestId> writer;
  };
  void release_one(std::uint32_t block, std::uint64_t step);
  void settle(std::uint32_t block);
  void unname(std::uint32_t block);
  void cache(std::uint32_t block);
  void uncache(std::uint32_t block);
  std::uint32_t take();

  bool keep_cached_;
  IdSet free_;
  PrefixCache names_;
  std::vector<Block> blocks_;  ///< [num_blocks]
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint64_t num_cached_ = 0;
  std::uint64_t num_in_flight_ = 0;
  std::uint64_t last_ended_ = 0;
  /// By step; a block that was shared meanwhile is passed over.
  std::map<std::uint64_t, std::vector<std::uint32_t>> retired_;
};

}  // namespace brigade::router
