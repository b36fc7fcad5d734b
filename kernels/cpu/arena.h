// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace brigade::kernels {

/// Zeroed anonymous memory that asks for huge pages; pages are taken when first touched.
class Mapping final {
 public:
  /// nullptr when the system has no such memory.
  [[nodiscard]] static std::unique_ptr<Mapping> create(std::size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// Aligned to 2 MiB.
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  Mapping(void* base, std::size_t mapped, std::byte* data, std::size_t size);
  void* base_;
  std::size_t mapped_;
  std::byte* data_;
  std::size_t size_;
};

/// Hands out pieces of mappings, one after another: weights packed in the order of use lie in
/// memory in that order, and small ones share huge pages. A mapping lives as long as one of its
/// pieces.
class Arena final {
 public:
  struct Piece {
    std::shared_ptr<Mapping> owner;  ///< null when there is no memory
    std::byte* data = nullptr;       ///< aligned to 64
  };

  [[nodiscard]] Piece allocate(std::size_t bytes);

 private:
  std::shared_ptr<Mapping> current_;
  std::size_t used_ = 0;
};

}  // namespace brigade::kernels
