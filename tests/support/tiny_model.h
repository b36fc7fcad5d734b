// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/model/gguf.h"
#include "tests/support/gguf_builder.h"

namespace brigade::test {

/// A random decoder of the `llama` architecture, small enough to run everywhere in a test.
struct TinyModel {
  std::int64_t hidden_size = 96;
  std::int64_t intermediate_size = 160;
  std::int64_t num_layers = 4;
  std::int64_t num_heads = 6;
  std::int64_t num_kv_heads = 3;
  std::int64_t head_dim = 16;
  std::int64_t vocab_size = 200;
  model::TensorType weights = model::TensorType::kF32;  ///< of all matrices; norms stay F32
  bool tied = true;
  std::uint64_t seed = 1;
};

/// All keys and tensors, to be altered before it is built.
[[nodiscard]] GgufBuilder tiny_model_builder(const TinyModel& model, std::uint32_t version = 3);

/// The path of the real model: BRIGADE_MODEL, or models/SmolLM2-135M-Instruct.Q4_1.gguf. Empty when
/// it is not there.
[[nodiscard]] std::string real_model_path();
inline constexpr const char* kNoModel =
    "the model file is missing: run tools/fetch-model, or set BRIGADE_MODEL";

}  // namespace brigade::test
