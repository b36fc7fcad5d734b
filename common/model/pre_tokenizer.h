// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace brigade::model {

/// What a pre-tokenizer's name says beside how text is cut.
struct PreTokenizerTraits {
  bool whole_pieces = false;  ///< a piece that is a token is that token, whatever the merges give
  bool add_bos = false;       ///< where the file does not say
};

/// Cuts text into the pieces that BPE works in. Concatenated, the pieces are the text. Which
/// characters are letters, numbers and so on is Unicode 14's word (PCRE2 10.42); those assigned
/// later count as none of them. Immutable, safe from any thread.
class PreTokenizer {
 public:
  /// By the value of tokenizer.ggml.pre, empty for "default". kInvalidArgument naming an unknown
  /// one, with those known.
  static Result<std::unique_ptr<const PreTokenizer>> make(std::string_view name);
  virtual ~PreTokenizer() = default;

  /// Appends the pieces, views into `text` (valid UTF-8), none of them empty. Linear in the text's
  /// length.
  virtual void split(std::string_view text, std::vector<std::string_view>& pieces) const = 0;
  [[nodiscard]] virtual PreTokenizerTraits traits() const = 0;
};

}  // namespace brigade::model
