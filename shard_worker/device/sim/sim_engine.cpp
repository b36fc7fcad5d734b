// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/device/sim/sim_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>

#include "common/base/random.h"
#include "common/base/strings.h"

namespace brigade::worker {
namespace {

/// A row in flight: token and position, 16 bits a float, which f32 holds exactly.
constexpr std::int64_t kHiddenSize = 4;
constexpr double kMaxStepUs = 60e6;
constexpr std::uint64_t kMaxSimBlocks = std::uint64_t{1} << 20;
constexpr int kMaxAttempts = 64;

void write_row(float* row, std::uint32_t token, std::uint32_t position) {
  row[0] = static_cast<float>(token & 0xffff);
  row[1] = static_cast<float>(token >> 16);
  row[2] = static_cast<float>(position & 0xffff);
  row[3] = static_cast<float>(position >> 16);
}

/// Two floats of write_row, or nothing when they are not what it writes.
std::optional<std::uint32_t> read_pair(float low, float high) {
  const auto half = [](float x) { return x >= 0 && x < 65536 && std::trunc(x) == x; };
  if (!half(low) || !half(high)) return std::nullopt;
  return static_cast<std::uint32_t>(low) | static_cast<std::uint32_t>(high) << 16;
}

std::int32_t draw(const wire::SequenceAdmit& params, std::int32_t previous,
                  std::uint32_t position) {
  const auto& banned = params.banned_tokens;
  std::int32_t token = 0;
  for (std::uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    token = sim_token(previous, position, attempt);
    const bool is_banned = position < params.banned_until_position &&
                           std::find(banned.begin(), banned.end(), token) != banned.end();
    if (!is_banned) break;
  }
  return token;
}

class SimEngine final : public Engine {
 public:
  Status load(const wire::Assign& assign, const std::function<void(float)>& progress) override;
  [[nodiscard]] std::uint64_t weight_bytes() const override { return 0; }
  [[nodiscard]] std::uint64_t max_kv_blocks(std::uint64_t memory_bytes) const override;
  [[nodiscard]] std::uint64_t kv_block_bytes() const override;
  Status allocate_kv(std::uint64_t num_kv_blocks) override;
  [[nodiscard]] std::int64_t hidden_size() const override { return kHiddenSize; }
  [[nodiscard]] std::int64_t vocab_size() const override {
    return std::numeric_limits<std::int32_t>::max();
  }
  Status run(const StepInputs& inputs, Collective& group, TimePoint deadline,
             std::span<float> hidden, std::vector<ScoredToken>& scored) override;

 private:
  Status sleep(const StepInputs& inputs, TimePoint deadline) const;
  Status check_rows(const StepInputs& inputs, std::span<const float> hidden);
  void score(const StepInputs& inputs, std::vector<ScoredToken>& scored) const;
  void score_row(const ScoreRow& row, ScoredToken& out) const;

  bool loaded_ = false;
  std::string model_path_;
  Range layers_;
  std::int64_t num_layers_ = 0;  ///< of all stages
  wire::SimCost cost_;
  std::uint64_t seed_ = 0;
  bool first_stage_ = false;
  bool last_stage_ = false;
  std::uint32_t tp_size_ = 1;
  std::vector<std::int32_t> row_tokens_;  ///< [num_tokens] as the activations tell them
};

Status SimEngine::load(const wire::Assign& assign, const std::function<void(float)>& progress) {
  const wire::StageInfo& stage = assign.stages[assign.pp_stage];
  const bool keep = loaded_ && model_path_ == assign.model_path && layers_ == stage.layers;
  model_path_ = assign.model_path;
  layers_ = stage.layers;
  num_layers_ = assign.stages.back().layers.end;
  cost_ = assign.sim;
  seed_ = sim_seed(assign.replica, assign.pp_stage);
  first_stage_ = assign.pp_stage == 0;
  last_stage_ = assign.pp_stage + 1 == assign.stages.size();
  tp_size_ = stage.tp_size;
  loaded_ = true;
  constexpr int kParts = 10;
  const double load_ms = keep ? 0 : std::clamp(cost_.load_ms, 0.0, kMaxStepUs / 1000);
  const auto begin = Clock::now();
  for (int part = 1; part <= kParts && load_ms > 0; ++part) {
    std::this_thread::sleep_until(begin + std::chrono::microseconds(static_cast<std::int64_t>(
                                              load_ms * 1000 * part / kParts)));
    progress(static_cast<float>(part) / kParts);
  }
  return {};
}

std::uint64_t SimEngine::max_kv_blocks(std::uint64_t memory_bytes) const {
  return std::min(kMaxSimBlocks, memory_bytes / kv_block_bytes());
}

std::uint64_t SimEngine::kv_block_bytes() const {
  return kSimBlockBytes * static_cast<std::uint64_t>(std::max<std::int64_t>(layers_.size(), 1));
}

Status SimEngine::allocate_kv(std::uint64_t num_kv_blocks) {
  if (num_kv_blocks <= kMaxSimBlocks) return {};
  return invalid_argument(
      str_cat(num_kv_blocks, " KV blocks, a simulated device has ", kMaxSimBlocks));
}

Status SimEngine::sleep(const StepInputs& inputs, TimePoint deadline) const {
  const auto& lens = inputs.context_lens;
  const std::int64_t context = std::accumulate(lens.begin(), lens.end(), std::int64_t{0});
  const auto all_layers = static_cast<double>(std::max<std::int64_t>(num_layers_, 1));
  const double share = static_cast<double>(layers_.size()) / all_layers / tp_size_;
  const TimePoint end =
      Clock::now() + sim_step_time(cost_, share, inputs.num_tokens(), context, seed_, inputs.step);
  std::this_thread::sleep_until(std::min(end, deadline));
  if (end <= deadline) return {};
  return deadline_exceeded(str_cat("the simulated step ", inputs.step, " takes too long"));
}

/// Takes the rows' tokens from the activations, and holds them against the command.
Status SimEngine::check_rows(const StepInputs& inputs, std::span<const float> hidden) {
  const auto num_rows = static_cast<std::size_t>(inputs.num_tokens());
  row_tokens_.resize(num_rows);
  for (std::size_t i = 0; i < num_rows; ++i) {
    const float* row = hidden.data() + i * kHiddenSize;
    const auto token = read_pair(row[0], row[1]);
    const auto position = read_pair(row[2], row[3]);
    const bool token_known = inputs.tokens[i] >= 0;
    if (!token || !position || *position != static_cast<std::uint32_t>(inputs.positions[i]) ||
        (token_known && *token != static_cast<std::uint32_t>(inputs.tokens[i]))) {
      return data_loss(str_cat("activations of row ", i, " of step ", inputs.step,
                               " are not those of token ", inputs.tokens[i], " at position ",
                               inputs.positions[i]));
    }
    row_tokens_[i] = static_cast<std::int32_t>(*token);
  }
  return {};
}

void SimEngine::score_row(const ScoreRow& row, ScoredToken& out) const {
  const std::int32_t previous = row_tokens_[static_cast<std::size_t>(row.row)];
  const std::int32_t wanted =
      row.sample ? row.params->num_logprobs : row.params->num_prompt_logprobs;
  out = {.seq = row.seq,
         .position = row.position,
         .token = row.sample ? draw(*row.params, previous, row.position) : row.target,
         .sampled = row.sample,
         .logprob = std::numeric_limits<float>::quiet_NaN()};
  if (wanted < 0) return;
  const auto counter = static_cast<std::uint64_t>(previous) << 32 | row.position;
  out.logprob = static_cast<float>(-random_uniform(static_cast<std::uint64_t>(out.token), counter));
  for (std::int32_t i = 0; i < wanted; ++i) {
    out.top_tokens.push_back(sim_token(previous, row.position, static_cast<std::uint32_t>(i)));
    out.top_logprobs.push_back(-0.5F - static_cast<float>(i));
  }
}

void SimEngine::score(const StepInputs& inputs, std::vector<ScoredToken>& scored) const {
  scored.resize(inputs.score_rows.size());
  for (std::size_t i = 0; i < scored.size(); ++i)
    score_row(inputs.score_rows[i], scored[i]);
}

Status SimEngine::run(const StepInputs& inputs, Collective& group, TimePoint deadline,
                      std::span<float> hidden, std::vector<ScoredToken>& scored) {
  scored.clear();
  INVARIANT_EQ(hidden.size(), static_cast<std::size_t>(inputs.num_tokens() * kHiddenSize));
  if (first_stage_) {
    for (std::size_t i = 0; i < inputs.tokens.size(); ++i) {
      write_row(hidden.data() + i * kHiddenSize, static_cast<std::uint32_t>(inputs.tokens[i]),
                static_cast<std::uint32_t>(inputs.positions[i]));
    }
  }
  RETURN_IF_ERROR(sleep(inputs, deadline));
  // Each rank brings its rows, and zeros for the others': only a right sum gives all rows back.
  for (std::size_t i = 0; i < inputs.tokens.size(); ++i) {
    const bool mine =
        i % static_cast<std::size_t>(group.size()) == static_cast<std::size_t>(group.rank());
    if (!mine) std::fill_n(hidden.data() + i * kHiddenSize, kHiddenSize, 0.0F);
  }
  RETURN_IF_ERROR(group.all_reduce(hidden, deadline));
  RETURN_IF_ERROR(check_rows(inputs, hidden));
  if (last_stage_ && group.rank() == 0) score(inputs, scored);
  return {};
}

}  // namespace

std::int32_t sim_token(std::int32_t previous, std::uint32_t position, std::uint32_t attempt) {
  const std::uint64_t bits = random_bits(static_cast<std::uint64_t>(previous), position, attempt);
  return kSimFirstToken + static_cast<std::int32_t>(bits % kSimNumTokens);
}

std::uint64_t sim_seed(std::uint32_t replica, std::uint32_t pp_stage) {
  return random_bits(replica, pp_stage);
}

Duration sim_step_time(const wire::SimCost& cost, double share, std::int64_t num_tokens,
                       std::int64_t num_context_tokens, std::uint64_t seed, std::uint64_t step) {
  const double work = cost.us_per_token * static_cast<double>(num_tokens) +
                      cost.us_per_context_token * static_cast<double>(num_context_tokens);
  const double us = (cost.base_us + share * work) * (1 + cost.jitter * random_uniform(seed, step));
  // Written so that NaN is 0 too.
  const double bounded = us > 0 ? std::min(us, kMaxStepUs) : 0;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(bounded * 1000));
}

std::unique_ptr<Engine> make_sim_engine() {
  return std::make_unique<SimEngine>();
}

}  // namespace brigade::worker
