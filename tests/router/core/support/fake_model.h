// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/model/tokenizer.h"
#include "common/wire/messages.h"
#include "router/core/types.h"

namespace brigade::router::testing {

/// 64 tokens: an end token, another special one, letters, pairs of letters, and the two bytes of a
/// character apart.
class FakeTokenizer final : public model::Tokenizer {
 public:
  static constexpr std::int32_t kEnd = 0;
  static constexpr std::int32_t kSpecial = 1;
  static constexpr std::int32_t kA = 2;  ///< 'a'; 'z' is kA + 25
  static constexpr std::int32_t kSpace = 28;
  static constexpr std::int32_t kFirstByte = 29;   ///< 0xc3
  static constexpr std::int32_t kSecondByte = 30;  ///< 0xa9: together e with acute
  static constexpr std::int32_t kFirstPair = 31;   ///< "aa", "ab", ...
  static constexpr std::int32_t kVocabSize = 64;

  explicit FakeTokenizer(bool adds_space_prefix = false);
  void encode(std::string_view text, bool parse_special,
              std::vector<std::int32_t>& ids) const override;
  [[nodiscard]] std::string_view token_bytes(std::int32_t id, bool special) const override;
  [[nodiscard]] std::int32_t vocab_size() const override { return kVocabSize; }
  [[nodiscard]] bool is_special(std::int32_t id) const override { return id < kA; }
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view text) const override;
  [[nodiscard]] std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  [[nodiscard]] std::optional<std::int32_t> eos_id() const override { return kEnd; }
  [[nodiscard]] std::span<const std::int32_t> end_ids() const override { return end_ids_; }
  [[nodiscard]] bool add_bos() const override { return false; }
  [[nodiscard]] bool adds_space_prefix() const override { return adds_space_prefix_; }

 private:
  bool adds_space_prefix_;
  std::vector<std::string> bytes_;
  std::vector<std::int32_t> end_ids_{kEnd};
};

[[nodiscard]] std::shared_ptr<const ServedModel> make_fake_model(const std::string& name = "fake",
                                                                 std::int64_t max_context = 512);

/// The fake model: a token is a hash of all tokens before it (as a stage reads them from its KV),
/// its position, and the seed unless the choice is greedy. Banned tokens are passed over as a
/// sampler would. A history's hash is that of the history without its last token, and that token;
/// it is never 0, and that of no tokens is 0.
[[nodiscard]] std::uint64_t history_hash(std::uint64_t before, std::int32_t token);
[[nodiscard]] std::int32_t sample_token(std::uint64_t history, std::uint32_t position,
                                        const wire::SequenceAdmit& params);
[[nodiscard]] float fake_logprob(std::int32_t token, std::uint32_t position);

/// What an undisturbed run gives, worked out without any of the router's code.
struct Expected {
  std::vector<std::int32_t> tokens;
  std::string text;
  wire::FinishReason finish = wire::FinishReason::kNone;
  std::string stop_reason;
};
[[nodiscard]] Expected expect(const Request& request, std::uint64_t seed, const ServedModel& model);

}  // namespace brigade::router::testing
