// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "common/base/status.h"
#include "common/base/strings.h"

namespace brigade::model {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

/// Reads forward through the first bytes of a file. Nothing is read past them; whether a length can
/// be true is judged by the size of the whole file. When it can, but the bytes at hand end sooner,
/// the cursor is `starved` and its error says only that more of the file is needed.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::uint64_t file_size)
      : bytes_(bytes), file_size_(file_size) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  /// Of the file.
  [[nodiscard]] std::uint64_t remaining() const { return file_size_ - position_; }
  [[nodiscard]] bool starved() const { return starved_; }

  template <typename T>
  Result<T> read(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    ASSIGN_OR_RETURN(const auto bytes, take(what, sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  Result<std::string_view> read_string(std::string_view what, std::uint64_t max_bytes) {
    ASSIGN_OR_RETURN(const auto length, read<std::uint64_t>(what));
    if (length > max_bytes) {
      return data_loss(str_cat(what, " is ", length, " bytes long; at most ", max_bytes));
    }
    ASSIGN_OR_RETURN(const auto bytes, take(what, length));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  Result<std::span<const std::byte>> take(std::string_view what, std::uint64_t size) {
    if (size > remaining()) {
      return data_loss(str_cat(what, " needs ", size, " bytes at offset ", position_, ", but only ",
                               remaining(), " are left in the file: is it cut short?"));
    }
    if (size > bytes_.size() - position_) {
      starved_ = true;
      return data_loss(str_cat(what, " lies past the first ", bytes_.size(), " bytes"));
    }
    const auto taken = bytes_.subspan(position_, size);
    position_ += size;
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t file_size_;
  std::uint64_t position_ = 0;
  bool starved_ = false;
};

}  // namespace brigade::model
