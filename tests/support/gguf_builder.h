// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/gguf.h"

namespace brigade::test {

/// Writes GGUF files for tests: keys and tensors in the order they are added. Floats are rounded to
/// the tensor's type the way ggml does it (quantised: groups of 32 along a row).
class GgufBuilder {
 public:
  explicit GgufBuilder(std::uint32_t version = 3) : version_(version) {}

  GgufBuilder& add_u32(std::string_view key, std::uint32_t value);
  GgufBuilder& add_u64(std::string_view key, std::uint64_t value);
  GgufBuilder& add_f32(std::string_view key, float value);
  GgufBuilder& add_bool(std::string_view key, bool value);
  GgufBuilder& add_string(std::string_view key, std::string_view value);
  GgufBuilder& add_strings(std::string_view key, const std::vector<std::string>& values);
  GgufBuilder& add_i32s(std::string_view key, const std::vector<std::int32_t>& values);
  GgufBuilder& add_f32s(std::string_view key, const std::vector<float>& values);
  /// A value of any type, its bytes given.
  GgufBuilder& add_raw(std::string_view key, std::uint32_t type, std::string_view bytes);
  /// values: [rows, cols] row-major; rows 0 writes a one-dimensional tensor.
  GgufBuilder& add_tensor(std::string_view name, model::TensorType type, std::int64_t rows,
                          std::int64_t cols, std::span<const float> values);
  /// A tensor table entry as given, with `data` behind it.
  GgufBuilder& add_raw_tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                              std::uint32_t type, std::string data);
  GgufBuilder& set_alignment(std::uint32_t alignment);

  [[nodiscard]] std::string build() const;

 private:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dims;
    std::uint32_t type = 0;
    std::string data;
  };

  void start_key(std::string_view key, std::uint32_t type);

  std::uint32_t version_;
  std::uint32_t alignment_ = 32;
  std::uint64_t num_keys_ = 0;
  std::string keys_;
  std::vector<Tensor> tensors_;
};

/// The bytes of `values` (whole rows of whole blocks) as `type`.
[[nodiscard]] std::string encode_tensor(model::TensorType type, std::span<const float> values);

/// A file under the temporary directory, removed with the object.
class TempFile {
 public:
  explicit TempFile(std::string_view bytes, std::string_view suffix = ".gguf");
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace brigade::test
