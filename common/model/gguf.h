// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace brigade::model {

/// ggml's type ids, as stored. Only those named here can be read; others are refused by number and
/// name.
enum class TensorType : std::uint32_t { kF32 = 0, kF16 = 1, kQ4_1 = 3, kQ8_0 = 8, kBF16 = 30 };

[[nodiscard]] std::string_view to_string(TensorType type);
/// Weights a block of the type holds, and its bytes (F32: 1 and 4; Q4_1: 32 and 20; Q8_0: 32 and
/// 34).
[[nodiscard]] std::int64_t block_elements(TensorType type);
[[nodiscard]] std::int64_t block_bytes(TensorType type);

/// One tensor of a mapped file. Row-major [rows, cols] as HF counts them (GGUF's list reversed);
/// one-dimensional tensors have rows = 1. `data` points into the mapping and lives as long as the
/// GgufFile.
struct TensorInfo {
  std::string name;
  TensorType type = TensorType::kF32;
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  std::span<const std::byte> data;

  [[nodiscard]] std::int64_t row_bytes() const {
    return cols / block_elements(type) * block_bytes(type);
  }
};

struct GgufArray;
using GgufValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view,
                               std::shared_ptr<const GgufArray>>;

/// Arrays keep their elements by kind; strings point into the mapping.
struct GgufArray {
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>> items;
};

/// A GGUF file (v2, v3, little-endian), mapped read-only. Every count, length, offset and product
/// is checked against the file's size before memory is taken; an error names the field and says
/// what is wrong with it.
class GgufFile final {
 public:
  static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::uint32_t version() const;

  /// Typed access to metadata. kNotFound when the key is missing, kDataLoss when it has another
  /// type or does not fit.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<double> number(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> string(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string_view>> strings(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  [[nodiscard]] Result<std::vector<double>> numbers(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const;

  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const;
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const;

  /// Hex SHA-256 over the header (metadata and tensor table) and the file's size: tells two models
  /// apart without reading the weights.
  [[nodiscard]] const std::string& digest() const;

 private:
  GgufFile();
  Status parse();
  [[nodiscard]] Result<const GgufValue*> find(std::string_view key) const;
  template <typename T>
  [[nodiscard]] Result<std::vector<T>> items(std::string_view key, std::string_view kind) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct ModelSpec;

/// Reads and checks the description of the decoder in the file: required keys present, values in
/// range, every tensor the architecture needs there with the right shape. Errors name the key or
/// tensor.
[[nodiscard]] Result<ModelSpec> read_spec(const GgufFile& file);

}  // namespace brigade::model
