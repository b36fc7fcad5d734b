// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/device/engine.h"
#include "shard_worker/model/decoder_engine.h"

namespace brigade::worker {

std::unique_ptr<Engine> make_cpu_engine(const EngineOptions& options) {
  return std::make_unique<DecoderEngine>([options](kernels::ActivationMode mode) {
    return kernels::make_cpu_ops({.num_threads = options.num_threads,
                                  .pin = options.pin,
                                  .first_cpu = options.first_cpu,
                                  .spin = options.spin,
                                  .activations = mode});
  });
}

}  // namespace brigade::worker
