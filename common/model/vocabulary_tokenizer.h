// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/model/vocabulary.h"

namespace brigade::model {

/// Everything of a tokenizer but the algorithm: finds special tokens, and hands the text between
/// them to the algorithm.
class VocabularyTokenizer : public Tokenizer {
 public:
  explicit VocabularyTokenizer(Vocabulary vocabulary);

  void encode(std::string_view text, bool parse_special,
              std::vector<std::int32_t>& ids) const override;
  void encode_prompt(std::span<const PromptSegment> segments,
                     std::vector<std::int32_t>& ids) const override;
  [[nodiscard]] std::string_view token_bytes(std::int32_t id, bool special) const override;
  [[nodiscard]] std::int32_t vocab_size() const override { return vocabulary_.size(); }
  [[nodiscard]] bool is_special(std::int32_t id) const override;
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view text) const override;
  [[nodiscard]] std::optional<std::int32_t> bos_id() const override { return vocabulary_.bos_id; }
  [[nodiscard]] std::optional<std::int32_t> eos_id() const override { return vocabulary_.eos_id; }
  [[nodiscard]] std::span<const std::int32_t> end_ids() const override {
    return vocabulary_.end_ids;
  }
  [[nodiscard]] bool add_bos() const override { return vocabulary_.add_bos; }
  [[nodiscard]] bool add_eos() const override { return vocabulary_.add_eos; }
  [[nodiscard]] bool adds_space_prefix() const override { return vocabulary_.add_space_prefix; }

 protected:
  /// Appends the ids of text without special tokens, which is valid UTF-8 and may be empty. It
  /// stands at the start of the whole or after a special token.
  virtual void encode_ordinary(std::string_view text, std::vector<std::int32_t>& ids) const = 0;

  /// Text as its tokens spell it, before special tokens are looked for in it.
  [[nodiscard]] virtual std::string normalize(std::string text) const { return text; }

  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  const Vocabulary vocabulary_;
  std::unordered_map<std::string_view, std::int32_t> by_bytes_;  ///< views into the vocabulary
};

}  // namespace brigade::model
