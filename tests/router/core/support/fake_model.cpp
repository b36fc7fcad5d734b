// SPDX-License-Identifier: Apache-2.0
#include "tests/router/core/support/fake_model.h"

#include <algorithm>

#include "common/base/random.h"

namespace brigade::router::testing {

FakeTokenizer::FakeTokenizer(bool adds_space_prefix) : adds_space_prefix_(adds_space_prefix) {
  bytes_ = {"<end>", "<special>"};
  for (char c = 'a'; c <= 'z'; ++c)
    bytes_.emplace_back(1, c);
  bytes_.emplace_back(" ");
  bytes_.emplace_back("\xc3");
  bytes_.emplace_back("\xa9");
  while (bytes_.size() < kVocabSize) {
    const std::size_t pair = bytes_.size() - kFirstPair;
    bytes_.push_back({static_cast<char>('a' + pair / 6), static_cast<char>('a' + pair % 6)});
  }
}

void FakeTokenizer::encode(std::string_view text, bool /*parse_special*/,
                           std::vector<std::int32_t>& ids) const {
  for (const char c : text)
    ids.push_back(c == ' ' ? kSpace : kA + (c - 'a'));
}

std::string_view FakeTokenizer::token_bytes(std::int32_t id, bool special) const {
  if (id < 0 || id >= kVocabSize || (id < kA && !special)) return {};
  return bytes_[static_cast<std::size_t>(id)];
}

std::optional<std::int32_t> FakeTokenizer::find(std::string_view text) const {
  const auto it = std::find(bytes_.begin(), bytes_.end(), text);
  if (it == bytes_.end()) return std::nullopt;
  return static_cast<std::int32_t>(it - bytes_.begin());
}

std::shared_ptr<const ServedModel> make_fake_model(const std::string& name,
                                                   std::int64_t max_context) {
  auto model = std::make_shared<ServedModel>();
  model->name = name;
  model->path = "/models/" + name;
  model->digest = "0123";
  model->spec.name = name;
  model->spec.architecture = "llama";
  model->spec.hidden_size = 256;
  model->spec.intermediate_size = 512;
  model->spec.num_layers = 12;
  model->spec.num_heads = 8;
  model->spec.num_kv_heads = 4;
  model->spec.head_dim = 32;
  model->spec.rotary_dim = 32;
  model->spec.vocab_size = FakeTokenizer::kVocabSize;
  model->spec.context_length = max_context;
  model->tokenizer = std::make_shared<FakeTokenizer>();
  model->max_context = max_context;
  return model;
}

std::uint64_t history_hash(std::uint64_t before, std::int32_t token) {
  return mix64(before ^ static_cast<std::uint32_t>(token)) | 1;
}

std::int32_t sample_token(std::uint64_t history, std::uint32_t position,
                          const wire::SequenceAdmit& params) {
  const std::uint64_t seed = params.temperature == 0 ? 0 : params.seed;
  for (std::uint64_t draw = 0;; ++draw) {
    const std::uint64_t bits = random_bits(history ^ seed, position, draw);
    const auto token = static_cast<std::int32_t>(bits % FakeTokenizer::kVocabSize);
    const bool banned = position < params.banned_until_position &&
                        std::count(params.banned_tokens.begin(), params.banned_tokens.end(), token);
    if (!banned) return token;
  }
}

float fake_logprob(std::int32_t token, std::uint32_t position) {
  return -0.25F * static_cast<float>(1 + token % 7) - static_cast<float>(position % 3);
}

namespace {

/// Cuts the text at the stop string that ends first (of those the longest), if one ends after
/// `from`.
bool cut_at_stop(const std::vector<std::string>& stops, std::size_t from, Expected& expected) {
  for (std::size_t end = from + 1; end <= expected.text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops) {
      if (stop.size() > end || expected.text.compare(end - stop.size(), stop.size(), stop) != 0) {
        continue;
      }
      if (best == nullptr || stop.size() > best->size()) best = &stop;
    }
    if (best == nullptr) continue;
    expected.text.resize(end - best->size());
    expected.finish = wire::FinishReason::kStop;
    expected.stop_reason = *best;
    return true;
  }
  return false;
}

}  // namespace

Expected expect(const Request& request, std::uint64_t seed, const ServedModel& model) {
  const wire::GenerationParams& params = request.params;
  Expected expected;
  std::uint64_t history = 0;
  for (const std::int32_t token : request.prompt)
    history = history_hash(history, token);
  const auto num_prompt = static_cast<std::uint32_t>(request.prompt.size());
  const std::uint32_t max_tokens =
      params.max_tokens.value_or(static_cast<std::uint32_t>(model.max_context) - num_prompt);
  wire::SequenceAdmit admit{.seed = seed, .temperature = params.temperature};
  admit.banned_until_position = num_prompt + params.min_tokens;
  admit.banned_tokens = params.stop_token_ids;
  admit.banned_tokens.push_back(FakeTokenizer::kEnd);
  model::StreamingDetokenizer detokenizer(model.tokenizer);
  std::size_t no_end_before = 0;
  while (expected.finish == wire::FinishReason::kNone) {
    const auto position = num_prompt + static_cast<std::uint32_t>(expected.tokens.size());
    const std::int32_t token = sample_token(history, position, admit);
    history = history_hash(history, token);
    expected.tokens.push_back(token);
    const bool may_stop = expected.tokens.size() > params.min_tokens;
    const auto& ids = params.stop_token_ids;
    const bool is_stop = may_stop && std::count(ids.begin(), ids.end(), token) > 0;
    const bool is_end = may_stop && !params.ignore_eos && token == FakeTokenizer::kEnd;
    if (!is_stop && !is_end) expected.text += detokenizer.push(token);
    if (!may_stop) no_end_before = expected.text.size();
    if (cut_at_stop(params.stop, no_end_before, expected)) return expected;
    if (is_stop || is_end) {
      expected.finish = wire::FinishReason::kStop;
      if (is_stop) expected.stop_reason = std::to_string(token);
    } else if (expected.tokens.size() >= max_tokens) {
      expected.finish = wire::FinishReason::kLength;
    }
  }
  expected.text += detokenizer.finish();
  return expected;
}

}  // namespace brigade::router::testing
