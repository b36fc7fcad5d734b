// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace brigade::model {

/// Bytes that are read a piece at a time, by any number of threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset` on. An error when there are fewer bytes by now, or the device fails.
  [[nodiscard]] virtual Status read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// A regular file through one descriptor, held as long as the object lives: a file that is replaced
/// meanwhile stays the old one, and one that is cut short gives an error. (A mapping would end the
/// process there, and count every page once read as its memory.)
class FileSource final : public ByteSource {
 public:
  static Result<std::shared_ptr<const FileSource>> open(const std::string& path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  FileSource(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
  std::uint64_t size_ = 0;
};

/// Bytes in memory that belong to someone else.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace brigade::model
