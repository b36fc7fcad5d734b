// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace brigade::router {

/// A set of ids in [0, size) that gives its lowest member in O(log64 size), so that blocks and
/// slots are handed out in ascending order. A bitmap whose bit i tells that word i of the bitmap
/// below is not empty.
class IdSet final {
 public:
  explicit IdSet(std::size_t size, bool full = false);

  void insert(std::size_t id);  ///< must not be a member
  void erase(std::size_t id);   ///< must be a member
  [[nodiscard]] bool contains(std::size_t id) const;
  [[nodiscard]] std::optional<std::size_t> lowest() const;
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::size_t size_;
  std::size_t count_ = 0;
  std::vector<std::vector<std::uint64_t>> levels_;  ///< [0]: the members; the last has one word
};

}  // namespace brigade::router
