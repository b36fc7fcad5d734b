// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/target.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "hwy/targets.h"

namespace brigade::kernels {

std::string_view to_string(CpuTarget target) {
  switch (target) {
    case CpuTarget::kAvx3Dl:
      return "AVX3_DL";
    case CpuTarget::kAvx2:
      return "AVX2";
    default:
      return "SCALAR";
  }
}

std::vector<CpuTarget> supported_targets() {
  const std::int64_t supported = hwy::SupportedTargets();
  std::vector<CpuTarget> targets = {CpuTarget::kScalar};
  if ((supported & HWY_AVX2) != 0) targets.push_back(CpuTarget::kAvx2);
  if ((supported & HWY_AVX3_DL) != 0) targets.push_back(CpuTarget::kAvx3Dl);
  return targets;
}

CpuTarget chosen_target() {
  const std::vector<CpuTarget> targets = supported_targets();
  const char* wanted = std::getenv("BRIGADE_CPU_TARGET");
  if (wanted == nullptr) return targets.back();
  std::string name(wanted);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto named = std::find_if(targets.begin(), targets.end(),
                                  [&](CpuTarget t) { return to_string(t) == name; });
  return named == targets.end() ? targets.back() : *named;
}

bool gains_by_prefetch() {
#if defined(__x86_64__)
  static const bool gains = __builtin_cpu_is("intel") != 0;
  return gains;
#else
  return false;
#endif
}

std::string_view cpu_target_name() {
  return to_string(chosen_target());
}

}  // namespace brigade::kernels
