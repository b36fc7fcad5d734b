// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "common/base/strings.h"
#include "common/model/spec_parts.h"

namespace brigade::model {
namespace {

constexpr std::string_view kPattern = "attention.sliding_window_pattern";

/// Which layers have a window, by layer: the file's own list or period, else the family's period.
Result<std::vector<bool>> windowed_layers(const SpecKeys& keys, const Architecture& architecture,
                                          const ModelSpec& spec) {
  const auto size = static_cast<std::size_t>(spec.num_layers);
  if (const auto list = keys.file().integers(keys.key(kPattern)); list.ok()) {
    if (list->size() != size) {
      return data_loss(str_cat("key ", quoted(keys.key(kPattern)), " has ", list->size(),
                               " entries for ", size, " layers"));
    }
    return std::vector<bool>(list->begin(), list->end());
  }
  ASSIGN_OR_RETURN(const auto period,
                   keys.integer_or(kPattern, architecture.window_period, 0, spec.num_layers + 1));
  if (period == 0) {
    return invalid_argument(str_cat("key ", quoted(keys.key("attention.sliding_window")),
                                    " is there, but which layers have the window is not known for ",
                                    spec.architecture, ": set it to 0 if none has"));
  }
  std::vector<bool> windowed(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto place = static_cast<std::int64_t>(i) % period;
    windowed[i] = period == 1 || place < period - 1;
  }
  return windowed;
}

}  // namespace

Status read_layers(const SpecKeys& keys, const Architecture& architecture, ModelSpec& spec) {
  spec.layers.resize(static_cast<std::size_t>(spec.num_layers));
  ASSIGN_OR_RETURN(auto window, keys.integer_or("attention.sliding_window",
                                                architecture.default_window, 0, INT32_MAX));
  std::vector<bool> windowed(spec.layers.size());
  // The pattern decides the rotations too, so it counts even where the window covers everything.
  if (window > 0 && (window < spec.context_length || spec.ropes.size() > 1)) {
    ASSIGN_OR_RETURN(windowed, windowed_layers(keys, architecture, spec));
  }
  if (window >= spec.context_length) window = 0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    if (windowed[i]) {
      layer.window = window;
      layer.rope = static_cast<std::uint32_t>(spec.ropes.size() - 1);
    }
    layer.has_experts =
        spec.experts.num_experts > 0 &&
        keys.file().find_tensor(str_cat("blk.", i, ".ffn_gate_inp.weight")) != nullptr;
  }
  return {};
}

}  // namespace brigade::model
