// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/partition.h"
#include "common/base/status.h"
#include "common/model/spec.h"

namespace brigade::tools {

struct InspectOptions {
  std::string path;
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::int64_t context = 0;  ///< tokens that KV is counted for; 0: the model's own limit
  bool as_json = false;
};

/// The tensors of one type together.
struct TypeUse {
  std::string type;
  std::int64_t num_tensors = 0;
  std::int64_t num_weights = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t memory_bytes = 0;
};

/// What one rank holds, about: its share of the weights as the kernels keep them, KV in f16 for the
/// context, and room for a step of 256 tokens.
struct RankMemory {
  std::int64_t pp_stage = 0;
  std::int64_t tp_rank = 0;
  Range layers;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t scratch_bytes = 0;

  [[nodiscard]] std::uint64_t total() const { return weight_bytes + kv_bytes + scratch_bytes; }
};

/// All there is to say about a model file without computing with it.
struct Inspection {
  std::string path;
  std::string name;
  std::uint32_t version = 0;
  std::size_t num_parts = 1;
  std::uint64_t file_bytes = 0;
  std::size_t num_keys = 0;
  std::string digest;
  std::string architecture;
  std::int64_t num_weights = 0;
  std::vector<TypeUse> types;            ///< those with the most bytes first
  std::optional<model::ModelSpec> spec;  ///< empty: it cannot be served
  std::int64_t context = 0;              ///< that the ranks' KV is counted for
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::vector<RankMemory> ranks;
  std::vector<std::pair<std::string, std::string>> tokenizer;  ///< what, value
  std::optional<std::size_t> template_bytes;
  std::vector<std::string> warnings;
};

/// Reads the file's header; an error when it is not a GGUF file that can be read at all, or the
/// grid does not fit the model. What keeps it from being served is a warning.
[[nodiscard]] Result<Inspection> inspect_model(const InspectOptions& options);

[[nodiscard]] std::string render_inspection(const Inspection& inspection);
/// One JSON object with the same content.
[[nodiscard]] std::string inspection_json(const Inspection& inspection);

/// `brigade inspect`.
[[nodiscard]] Status inspect(const InspectOptions& options);

}  // namespace brigade::tools
