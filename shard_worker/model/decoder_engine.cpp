// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/decoder_engine.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/base/memory.h"
#include "common/base/strings.h"
#include "common/model/gguf.h"
#include "shard_worker/core/sequence_table.h"

namespace brigade::worker {
namespace {

constexpr std::uint32_t kMaxStepTokens = 1U << 16U;

kernels::ActivationMode op_mode(wire::ActivationMode mode) {
  return mode == wire::ActivationMode::kInt8 ? kernels::ActivationMode::kInt8
                                             : kernels::ActivationMode::kFloat;
}

/// The rank's place, checked against itself and the model: it came from another process.
Status check_assign(const wire::Assign& assign, const model::ModelSpec& spec) {
  const auto num_stages = static_cast<std::int64_t>(assign.stages.size());
  if (assign.pp_stage >= assign.stages.size()) {
    return invalid_argument(str_cat("assign: stage ", assign.pp_stage, " of ", num_stages));
  }
  std::int64_t next_layer = 0;
  for (const wire::StageInfo& stage : assign.stages) {
    RETURN_IF_ERROR(model::check_grid(spec, stage.tp_size, num_stages).with_context("assign"));
    if (stage.layers.begin != next_layer || stage.layers.size() < 1) {
      return invalid_argument(str_cat("assign: a stage has layers [", stage.layers.begin, ", ",
                                      stage.layers.end, "), but layer ", next_layer,
                                      " is the next"));
    }
    next_layer = stage.layers.end;
  }
  if (next_layer != spec.num_layers) {
    return invalid_argument(
        str_cat("assign: the stages end at layer ", next_layer, " of ", spec.num_layers));
  }
  const wire::StageInfo& own = assign.stages[assign.pp_stage];
  if (assign.tp_rank >= own.tp_size) {
    return invalid_argument(str_cat("assign: rank ", assign.tp_rank, " of ", own.tp_size));
  }
  if (assign.max_step_tokens < 1 || assign.max_step_tokens > kMaxStepTokens) {
    return invalid_argument(str_cat("assign: ", assign.max_step_tokens, " tokens a step; 1 to ",
                                    kMaxStepTokens, " are allowed"));
  }
  return {};
}

/// Memory is promised by the system before it is there; taking more than there is ends in a kill.
Status check_memory(std::string_view what, std::uint64_t bytes) {
  const std::uint64_t available = available_memory();
  if (bytes <= available) return {};
  return resource_exhausted(str_cat(what, " need ", memory_text(bytes), ", this machine has ",
                                    memory_text(available), " left"));
}

}  // namespace

Status DecoderEngine::load(const wire::Assign& assign, const std::function<void(float)>& progress) {
  cache_.reset();
  decoder_.reset();
  sampler_.reset();
  if (Status status = load_weights(assign, progress); !status.ok()) {
    key_.reset();
    weights_ = {};
    return status;
  }
  kv_type_ = assign.kv_type == wire::KvType::kF16 ? kernels::KvType::kF16 : kernels::KvType::kF32;
  max_step_tokens_ = assign.max_step_tokens;
  RETURN_IF_ERROR(check_memory("a step's work space",
                               Decoder::scratch_bytes(spec_, key_->shard, assign.max_step_tokens))
                      .with_context("lower limits.step_tokens"));
  decoder_ = std::make_unique<Decoder>(spec_, key_->shard, weights_, *ops_, max_step_tokens_);
  if (key_->shard.last_stage) {
    const std::int64_t tp_size = assign.stages[assign.pp_stage].tp_size;
    sampler_ =
        std::make_unique<Sampler>(model::split_tensors(spec_, tp_size).vocab, assign.tp_rank);
  }
  progress(1.0F);
  return {};
}

Status DecoderEngine::load_weights(const wire::Assign& assign,
                                   const std::function<void(float)>& progress) {
  ASSIGN_OR_RETURN(const auto file, model::GgufFile::open(assign.model_path));
  if (!assign.model_digest.empty() && file->digest() != assign.model_digest) {
    return failed_precondition(str_cat(quoted(assign.model_path, 512), " has the digest ",
                                       file->digest(), " here, not ", assign.model_digest,
                                       " as the router's: another file"));
  }
  ASSIGN_OR_RETURN(model::ModelSpec spec, model::read_spec(*file));
  RETURN_IF_ERROR(check_assign(assign, spec));
  const wire::StageInfo& stage = assign.stages[assign.pp_stage];
  const Key key{.path = assign.model_path,
                .digest = file->digest(),
                .shard = make_shard(spec, stage.layers, assign.tp_rank, stage.tp_size),
                .activations = assign.activations};
  if (key_ == key) return {};
  key_.reset();
  weights_ = {};  // before the new ones, which may need the memory
  if (ops_ == nullptr || activations_ != assign.activations) {
    ops_ = make_ops_(op_mode(assign.activations));
    activations_ = assign.activations;
  }
  spec_ = std::move(spec);
  ASSIGN_OR_RETURN(weights_, load_shard(*file, spec_, key.shard, *ops_, progress));
  key_ = key;
  return {};
}

std::uint64_t DecoderEngine::weight_bytes() const {
  return weights_.bytes();
}

kernels::KvShape DecoderEngine::kv_shape() const {
  return {.num_layers = key_->shard.layers.size(),
          .num_kv_heads = key_->shard.kv_heads.size(),
          .head_dim = spec_.head_dim,
          .type = kv_type_};
}

std::uint64_t DecoderEngine::max_kv_blocks(std::uint64_t memory_bytes) const {
  if (!key_) return 0;
  const std::uint64_t taken =
      weight_bytes() + Decoder::scratch_bytes(spec_, key_->shard, max_step_tokens_) +
      (key_->shard.last_stage ? Sampler::scratch_bytes(spec_.vocab_size) : 0);
  return memory_bytes <= taken ? 0 : (memory_bytes - taken) / kv_shape().block_bytes();
}

Status DecoderEngine::allocate_kv(std::uint64_t num_kv_blocks) {
  if (!key_) return failed_precondition("KV is asked for before weights are loaded");
  if (num_kv_blocks < 1 || num_kv_blocks > kMaxKvBlocks) {
    return invalid_argument(
        str_cat(num_kv_blocks, " KV blocks; 1 to ", kMaxKvBlocks, " are possible"));
  }
  cache_.reset();
  RETURN_IF_ERROR(check_memory("keys and values", num_kv_blocks * kv_block_bytes())
                      .with_context("lower --kv-memory or limits.kv_memory_mib"));
  ASSIGN_OR_RETURN(cache_,
                   ops_->make_kv_cache(kv_shape(), static_cast<std::int64_t>(num_kv_blocks)));
  return {};
}

Status DecoderEngine::check_tokens(const StepInputs& inputs) const {
  for (std::int32_t token : inputs.tokens) {
    if (token < 0 || token >= spec_.vocab_size) {
      return data_loss(str_cat("step ", inputs.step, ": token ", token,
                               " is not in the vocabulary of ", spec_.vocab_size));
    }
  }
  return {};
}

Status DecoderEngine::run(const StepInputs& inputs, Collective& group, TimePoint deadline,
                          std::span<float> hidden, std::vector<ScoredToken>& scored) {
  scored.clear();
  if (cache_ == nullptr) return failed_precondition("a step came before KV was allocated");
  if (inputs.num_tokens() > max_step_tokens_) {
    return invalid_argument(str_cat("step ", inputs.step, " has ", inputs.num_tokens(),
                                    " tokens; at most ", max_step_tokens_));
  }
  // The last samples among them came over a link, past the checks of the sequence table.
  if (key_->shard.first_stage) RETURN_IF_ERROR(check_tokens(inputs));
  for (const StepInputs::BlockCopy& copy : inputs.block_copies)
    ops_->copy_block(*cache_, copy.from, copy.to);
  RETURN_IF_ERROR(decoder_->forward(inputs, *cache_, group, deadline, hidden));
  return key_->shard.last_stage ? sample(inputs, group, deadline, hidden, scored) : Status();
}

Status DecoderEngine::sample(const StepInputs& inputs, Collective& group, TimePoint deadline,
                             std::span<const float> hidden, std::vector<ScoredToken>& scored) {
  sampler_->admit(inputs);
  std::span<const ScoreRow> rows(inputs.score_rows);
  while (!rows.empty()) {
    const bool whole = observer_ != nullptr || needs_logits(rows.front());
    const auto end = std::find_if(rows.begin(), rows.end(), [&](const ScoreRow& row) {
      return (observer_ != nullptr || needs_logits(row)) != whole;
    });
    const auto run = rows.first(static_cast<std::size_t>(end - rows.begin()));
    rows = rows.subspan(run.size());
    if (whole) {
      RETURN_IF_ERROR(sample_rows(run, group, deadline, hidden, scored));
      continue;
    }
    RETURN_IF_ERROR(decoder_->score(
        run, hidden, [&](std::size_t first, std::span<const kernels::LogitSum> sums) {
          return sampler_->score(run.subspan(first, sums.size()), sums, group, deadline, scored);
        }));
  }
  return {};
}

Status DecoderEngine::sample_rows(std::span<const ScoreRow> rows, Collective& group,
                                  TimePoint deadline, std::span<const float> hidden,
                                  std::vector<ScoredToken>& scored) {
  static_assert(Decoder::kLogitRows <= static_cast<std::int64_t>(Sampler::kMaxRows));
  std::array<kernels::LogitSum, Decoder::kLogitRows> sums;
  return decoder_->logits(
      rows, hidden, [&](std::size_t first, const kernels::Matrix& logits) -> Status {
        const auto count = static_cast<std::size_t>(logits.rows);
        const auto some = rows.subspan(first, count);
        for (std::size_t i = 0; observer_ && i < count; ++i) {
          observer_(some[i], key_->shard.vocab,
                    std::span(logits.row(static_cast<std::int64_t>(i)),
                              static_cast<std::size_t>(logits.cols)));
        }
        const bool sum = std::any_of(some.begin(), some.end(),
                                     [](const ScoreRow& row) { return num_logprobs(row) >= 0; });
        if (sum) ops_->log_sum(logits, std::span(sums).first(count));
        return sampler_->sample(some, logits, std::span(sums).first(count), group, deadline,
                                scored);
      });
}

}  // namespace brigade::worker
