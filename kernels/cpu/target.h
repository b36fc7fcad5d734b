// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/op.h"

namespace brigade::kernels {

/// Instruction sets the CPU kernels are compiled for. All give the same bits.
enum class CpuTarget : std::uint8_t {
  kScalar,  ///< plain C++ with std::fma: runs anywhere
  kAvx2,    ///< AVX2, FMA, F16C
  kAvx3Dl,  ///< AVX-512 with VNNI (Ice Lake, Sapphire Rapids, Zen 4)
};

/// Highway's name of the target: "SCALAR", "AVX2", "AVX3_DL".
[[nodiscard]] std::string_view to_string(CpuTarget target);
/// Those this CPU can run, best last.
[[nodiscard]] std::vector<CpuTarget> supported_targets();
/// The best one, or the one that BRIGADE_CPU_TARGET names, whatever its case, when this CPU can run
/// it.
[[nodiscard]] CpuTarget chosen_target();

/// Whether this CPU streams weights faster when one row of activations asks for them a panel ahead.
/// Measured: Intel's Emerald Rapids gains 15 to 20 % from DRAM, AMD's Zen 4 loses 4 to 19 %.
[[nodiscard]] bool gains_by_prefetch();

/// As make_cpu_ops(options), on a given target.
[[nodiscard]] std::unique_ptr<Ops> make_cpu_ops(const CpuOptions& options, CpuTarget target);

}  // namespace brigade::kernels
