// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/model/spec.h"

namespace brigade::kernels {

/// Ops::route for one row. logits: [num_experts]; experts, weights: [num_used]. Computed in double:
/// the number of experts is small, and a choice between two should not turn on a rounding.
void route_row(const model::ExpertSpec& spec, const float* logits, std::int32_t* experts,
               float* weights);

}  // namespace brigade::kernels
