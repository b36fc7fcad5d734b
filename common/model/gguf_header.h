// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/byte_source.h"
#include "common/model/gguf.h"
#include "common/model/gguf_value.h"

namespace brigade::model {

/// What stands before the weights of one file. Keys and values are views of `bytes`.
struct GgufHeader {
  std::vector<std::byte> bytes;  ///< at least the header, perhaps some of what follows
  std::uint64_t size = 0;        ///< of the header
  std::uint32_t version = 0;
  std::map<std::string_view, GgufValue> metadata;
  std::vector<TensorInfo> tensors;  ///< in the file's order, each inside the file

  /// An integer of the metadata; kNotFound, kDataLoss when of another type or too large.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key) const;
};

/// Reads as much of the file as its header takes, and checks it: every count, length, offset and
/// product against the file's size before memory is taken.
[[nodiscard]] Result<std::unique_ptr<GgufHeader>> read_header(
    const std::shared_ptr<const ByteSource>& source);

/// `key "name"`, for errors.
[[nodiscard]] std::string key_context(std::string_view key);
[[nodiscard]] Result<std::int64_t> as_integer(const GgufValue& value, std::string_view key);

/// What a file that is not GGUF seems to be, by its first bytes, and what to do about it: one line.
[[nodiscard]] std::string describe_foreign_file(std::string_view first_bytes);

}  // namespace brigade::model
