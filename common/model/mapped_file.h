// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace brigade::model {

/// A regular file mapped read-only (MAP_PRIVATE) through one descriptor, which is closed at once.
/// The bytes live as long as the object. A file that is cut short by someone else while mapped ends
/// the process with SIGBUS: model files are replaced by rename, not written in place.
class MappedFile final {
 public:
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace brigade::model
