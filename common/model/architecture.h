// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/model/spec.h"

namespace brigade::model {

/// What tells one GGUF architecture from another, besides what its files say. A new family is a new
/// row (and new columns where it needs them).
struct Architecture {
  std::string_view name;
  RopeStyle rope_style = RopeStyle::kHalves;
  Activation activation = Activation::kSilu;
  bool qkv_bias = false;  ///< required; elsewhere it is taken when it is there
  bool qk_norm = false;
  bool post_norms = false;
  bool scale_embedding = false;     ///< by sqrt(hidden_size)
  std::int64_t default_window = 0;  ///< where the file has no attention.sliding_window
  /// Every so manieth layer sees everything, the others their window; 1: all have the window; 0:
  /// windows are not known in this family.
  std::int64_t window_period = 0;
  double window_theta = 0;  ///< RoPE base of layers with a window; 0: as the others
  double attention_soft_cap = 0;
  double final_soft_cap = 0;
  /// With so many layers scores are scaled by 1 / sqrt(hidden_size / num_heads), not head_dim:
  /// Gemma's 27B models, whose files do not say so.
  std::int64_t wide_scale_layers = 0;
};

/// Sources: llama.cpp's model loaders (what files of these names mean), HF's configurations.
inline constexpr std::array kArchitectures = {
    // Llama 2 and 3, Mistral, Mixtral, SmolLM2.
    Architecture{.name = "llama", .rope_style = RopeStyle::kAdjacent, .window_period = 1},
    Architecture{.name = "qwen2", .qkv_bias = true},
    Architecture{.name = "qwen3", .qk_norm = true},
    Architecture{.name = "qwen3moe", .qk_norm = true},
    Architecture{.name = "phi3", .window_period = 1},
    Architecture{.name = "gemma", .activation = Activation::kGelu, .scale_embedding = true},
    Architecture{.name = "gemma2",
                 .activation = Activation::kGelu,
                 .post_norms = true,
                 .scale_embedding = true,
                 .default_window = 4096,
                 .window_period = 2,
                 .attention_soft_cap = 50,
                 .final_soft_cap = 30,
                 .wide_scale_layers = 46},
    Architecture{.name = "gemma3",
                 .activation = Activation::kGelu,
                 .qk_norm = true,
                 .post_norms = true,
                 .scale_embedding = true,
                 .window_period = 6,
                 .window_theta = 10000,
                 .wide_scale_layers = 62},
};

}  // namespace brigade::model
