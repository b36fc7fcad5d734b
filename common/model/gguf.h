// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/byte_source.h"
#include "common/model/gguf_value.h"
#include "common/model/tensor_type.h"

namespace brigade::model {

/// One tensor of a file. Row-major [rows, cols] as HF counts them (GGUF's list reversed);
/// one-dimensional tensors have rows = 1. Three-dimensional ones (experts) are `num_matrices` of
/// [rows / num_matrices, cols] one after another.
struct TensorInfo {
  std::string name;
  TensorType type = TensorType::kF32;
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  std::int64_t num_matrices = 1;
  std::uint64_t offset = 0;  ///< in source
  std::uint64_t bytes = 0;
  std::shared_ptr<const ByteSource> source;

  [[nodiscard]] std::int64_t row_bytes() const {
    return cols / block_elements(type) * block_bytes(type);
  }
  /// Fills `out` with stored bytes from `begin` of the tensor on.
  [[nodiscard]] Status read(std::uint64_t begin, std::span<std::byte> out) const;
  /// All values of an F32, F16 or BF16 tensor: norms, biases, rotation factors.
  [[nodiscard]] Result<std::vector<float>> read_floats() const;
};

struct GgufHeader;

/// A GGUF model (v2, v3, little-endian), of one file or of several parts. The header is in memory,
/// checked against the files' sizes; weights are read when asked for. An error names the field and
/// says what is wrong with it.
class GgufFile final {
 public:
  /// A model in parts (`NAME-00001-of-00003.gguf`) is opened by its first, the others beside it.
  static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The file's name without .gguf, and without the number of a part: what requests call the model.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::uint32_t version() const;
  [[nodiscard]] std::size_t num_parts() const { return parts_.size(); }
  /// Of all parts together.
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

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
  [[nodiscard]] const std::map<std::string_view, GgufValue>& metadata() const;

  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const;
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return tensors_; }

  /// Hex SHA-256 over the headers (metadata and tensor tables) and the files' sizes: tells two
  /// models apart without reading the weights.
  [[nodiscard]] const std::string& digest() const { return digest_; }

 private:
  explicit GgufFile(std::string path);
  Status add_part(const std::string& path);
  Status add_further_parts();
  Status index_tensors();
  [[nodiscard]] Result<const GgufValue*> find(std::string_view key) const;

  std::string path_;
  std::vector<std::unique_ptr<GgufHeader>> parts_;
  std::uint64_t file_bytes_ = 0;
  std::vector<TensorInfo> tensors_;                               ///< of all parts, in order
  std::map<std::string, std::size_t, std::less<>> tensor_index_;  ///< name -> place in tensors_
  std::string digest_;
};

struct ModelSpec;

/// Reads and checks the description of the decoder in the file: required keys present, values in
/// range, every tensor the architecture needs there with the right shape. Errors name the key or
/// tensor.
[[nodiscard]] Result<ModelSpec> read_spec(const GgufFile& file);

}  // namespace brigade::model
