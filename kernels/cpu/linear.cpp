// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear.h"

namespace brigade::kernels {

LinearKernels linear_kernels(CpuTarget target) {
  LinearKernels kernels{};
  add_activations(target, kernels);
  add_int8(target, kernels);
  add_float(target, kernels);
  return kernels;
}

}  // namespace brigade::kernels
