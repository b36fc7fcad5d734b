// SPDX-License-Identifier: Apache-2.0
#include "kernels/route.h"

#include <algorithm>
#include <cmath>

namespace brigade::kernels {

void route_row(const model::ExpertSpec& spec, const float* logits, std::int32_t* experts,
               float* weights) {
  const std::int64_t used = spec.num_used;
  // The best so far in experts[0, num_chosen), falling.
  std::int64_t num_chosen = 0;
  for (std::int64_t e = 0; e < spec.num_experts; ++e) {
    std::int64_t at = num_chosen;
    while (at > 0 && logits[experts[at - 1]] < logits[e])
      --at;
    if (at == used) continue;
    num_chosen = std::min(num_chosen + 1, used);
    std::copy_backward(experts + at, experts + num_chosen - 1, experts + num_chosen);
    experts[at] = static_cast<std::int32_t>(e);
  }
  const double top = logits[experts[0]];
  std::sort(experts, experts + used);
  const auto share = [&](std::int64_t e) { return std::exp(logits[e] - top); };
  double sum = 0;
  if (spec.normalized) {
    for (std::int64_t i = 0; i < used; ++i)
      sum += share(experts[i]);
  } else {
    for (std::int64_t e = 0; e < spec.num_experts; ++e)
      sum += share(e);
  }
  for (std::int64_t i = 0; i < used; ++i)
    weights[i] = static_cast<float>(share(experts[i]) / sum * spec.scale);
}

}  // namespace brigade::kernels
