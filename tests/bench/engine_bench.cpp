// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/base/time.h"
#include "common/model/gguf.h"
#include "common/model/spec.h"
#include "shard_worker/collectives/solo.h"
#include "shard_worker/model/decoder_engine.h"

/// Tokens a second of one engine alone on one thread: decode and prefill, no router, no links.
///   engine_bench MODEL.gguf [REPEATS]
/// Best of REPEATS, by the wall clock and by the thread's own CPU time (what the wall would show on
/// a quiet machine).
namespace brigade::worker {
namespace {

constexpr std::int64_t kBlocksPerSeq = 48;  // 768 tokens
constexpr std::uint64_t kMaxBatch = 16;

/// Steps of `num_seqs` sequences, each with `tokens` new tokens behind `context` old ones; samples
/// the last row of each.
StepInputs make_inputs(std::int32_t num_seqs, std::int32_t tokens, std::int32_t context,
                       const wire::SequenceAdmit& params) {
  StepInputs inputs;
  inputs.cu_seqlens_q = {0};
  inputs.cu_blocks = {0};
  for (std::int32_t seq = 0; seq < num_seqs; ++seq) {
    const auto first_block = static_cast<std::int32_t>(seq * kBlocksPerSeq);
    for (std::int32_t i = 0; i < tokens; ++i) {
      const std::int32_t position = context + i;
      inputs.tokens.push_back(1000 + 37 * seq + 11 * i);
      inputs.positions.push_back(position);
      inputs.slot_mapping.push_back(first_block * 16 + position);
    }
    inputs.cu_seqlens_q.push_back(static_cast<std::int32_t>(inputs.tokens.size()));
    inputs.context_lens.push_back(context + tokens);
    for (std::int32_t i = 0; i * 16 < context + tokens; ++i) {
      inputs.block_tables.push_back(first_block + i);
    }
    inputs.cu_blocks.push_back(static_cast<std::int32_t>(inputs.block_tables.size()));
    inputs.score_rows.push_back({.row = static_cast<std::int32_t>(inputs.tokens.size()) - 1,
                                 .seq = static_cast<std::uint32_t>(seq),
                                 .position = static_cast<std::uint32_t>(context + tokens),
                                 .sample = true,
                                 .params = &params});
  }
  return inputs;
}

/// One sequence of new tokens, each scored.
StepInputs make_scoring(std::int32_t tokens, const wire::SequenceAdmit& params) {
  StepInputs inputs = make_inputs(1, tokens, /*context=*/0, params);
  inputs.score_rows.clear();
  for (std::int32_t i = 0; i < tokens; ++i) {
    inputs.score_rows.push_back({.row = i,
                                 .position = static_cast<std::uint32_t>(i + 1),
                                 .target = 500 + i,
                                 .params = &params});
  }
  return inputs;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Bench {
 public:
  Bench(Engine& engine, int repeats) : engine_(engine), repeats_(repeats) {}

  void report(const char* what, std::int32_t num_seqs, std::int32_t tokens, std::int32_t context) {
    const wire::SequenceAdmit greedy;
    report(what, make_inputs(num_seqs, tokens, context, greedy));
  }

  void report_scoring(const char* what, std::int32_t tokens, std::int32_t num_logprobs) {
    const wire::SequenceAdmit params{.num_prompt_logprobs = num_logprobs};
    report(what, make_scoring(tokens, params));
  }

 private:
  void report(const char* what, const StepInputs& inputs) {
    std::vector<float> hidden(inputs.tokens.size() *
                              static_cast<std::size_t>(engine_.hidden_size()));
    std::vector<ScoredToken> scored;
    double wall = 1e9;
    double cpu = 1e9;
    for (int i = 0; i <= repeats_; ++i) {
      const TimePoint begin = Clock::now();
      const double cpu_begin = cpu_seconds();
      const Status status = engine_.run(inputs, *solo_, kNever, hidden, scored);
      INVARIANT(status.ok()) << status.message();
      if (i == 0) continue;  // warms caches and scratch
      cpu = std::min(cpu, cpu_seconds() - cpu_begin);
      wall = std::min(wall, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    const auto count = static_cast<double>(inputs.tokens.size());
    std::printf("%-28s %9.1f tok/s by wall  %9.1f by CPU time\n", what, count / wall, count / cpu);
  }

  Engine& engine_;
  int repeats_;
  std::unique_ptr<Collective> solo_ = make_solo_collective();
};

Status run(const char* path, int repeats) {
  ASSIGN_OR_RETURN(const auto file, model::GgufFile::open(path));
  ASSIGN_OR_RETURN(const model::ModelSpec spec, model::read_spec(*file));
  const auto engine = make_cpu_engine({});
  wire::Assign assign{.epoch = 1, .model_path = path};
  assign.stages = {{.layers = {0, spec.num_layers}, .tp_size = 1}};
  const TimePoint begin = Clock::now();
  RETURN_IF_ERROR(engine->load(assign, [](float) {}));
  RETURN_IF_ERROR(engine->allocate_kv(kMaxBatch * kBlocksPerSeq));
  std::printf("%s: loaded %.1f MB in %.2f s, target %s\n", spec.name.c_str(),
              static_cast<double>(engine->weight_bytes()) / 1e6,
              std::chrono::duration<double>(Clock::now() - begin).count(),
              std::string(kernels::cpu_target_name()).c_str());
  Bench bench(*engine, repeats);
  bench.report("decode, batch 1, context 64", 1, 1, 64);
  bench.report("decode, batch 1, context 512", 1, 1, 512);
  for (const std::int32_t num_seqs : {2, 4, 8, 16}) {
    const std::string what = str_cat("decode, batch ", num_seqs, ", context 64");
    bench.report(what.c_str(), num_seqs, 1, 64);
  }
  bench.report("prefill 512", 1, 512, 0);
  bench.report_scoring("score 512", 512, 0);
  bench.report_scoring("score 512, 5 best", 512, 5);
  return {};
}

}  // namespace
}  // namespace brigade::worker

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: engine_bench MODEL.gguf [REPEATS]\n");
    return 2;
  }
  const brigade::Status status =
      brigade::worker::run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 10);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
