// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace brigade::model {

class GgufFile;
struct PromptSegment;  // chat_template.h

/// Text to token ids and back. Immutable after load, safe to use from any thread.
class Tokenizer {
 public:
  static Result<std::shared_ptr<const Tokenizer>> load(const GgufFile& file);
  virtual ~Tokenizer() = default;

  /// Appends the ids of `text` (must be valid UTF-8: checked by the caller with is_valid_utf8).
  /// With `parse_special` the special tokens' texts in it become those tokens; without, they are
  /// ordinary text. No BOS or EOS is added. Time is O(n log n) in the text's length whatever the
  /// text.
  virtual void encode(std::string_view text, bool parse_special,
                      std::vector<std::int32_t>& ids) const = 0;

  /// Appends the ids of a rendered prompt: those of the whole text, as if it were one string, but
  /// with special tokens only where the text is trusted (user-defined ones everywhere). No piece of
  /// ordinary text ends where a segment does. This base encodes each segment by itself.
  virtual void encode_prompt(std::span<const PromptSegment> segments,
                             std::vector<std::int32_t>& ids) const;

  /// The raw bytes of a token (may be part of a UTF-8 character). Empty for control tokens unless
  /// `special`. Ids outside the vocabulary give nothing.
  [[nodiscard]] virtual std::string_view token_bytes(std::int32_t id, bool special) const = 0;

  [[nodiscard]] virtual std::int32_t vocab_size() const = 0;
  [[nodiscard]] virtual bool is_special(std::int32_t id) const = 0;
  /// The id whose text is exactly `text`, special tokens included.
  [[nodiscard]] virtual std::optional<std::int32_t> find(std::string_view text) const = 0;
  [[nodiscard]] virtual std::optional<std::int32_t> bos_id() const = 0;
  [[nodiscard]] virtual std::optional<std::int32_t> eos_id() const = 0;
  /// Every token that ends a generation (eos, eot, eom where the model has them), ascending.
  [[nodiscard]] virtual std::span<const std::int32_t> end_ids() const = 0;
  [[nodiscard]] virtual bool add_bos() const = 0;
  [[nodiscard]] virtual bool add_eos() const { return false; }
  /// Whether text at the start and after a special token is encoded with a space before it
  /// (SentencePiece), which decoding takes away again.
  [[nodiscard]] virtual bool adds_space_prefix() const { return false; }

  /// The whole text of `ids`, invalid UTF-8 replaced by U+FFFD.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids, bool special) const;
};

[[nodiscard]] bool is_valid_utf8(std::string_view text);

/// Turns tokens into text as they come and never gives out half a UTF-8 character: bytes that may
/// still become one are held back; bytes that cannot are replaced by U+FFFD (one for each maximal
/// invalid part, as WHATWG and HF do).
class StreamingDetokenizer final {
 public:
  /// `previous` is the token before the first one, where there is one: text after a special token,
  /// or at the start of everything, loses the space that the tokenizer puts before it.
  explicit StreamingDetokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool special = false,
                                std::optional<std::int32_t> previous = std::nullopt);
  /// Text that became certain with this token.
  std::string push(std::int32_t id);
  /// What is held back, replaced: at the end of the sequence.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool special_;
  bool after_special_;
  std::string held_;
};

}  // namespace brigade::model
