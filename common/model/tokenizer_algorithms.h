// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/status.h"
#include "common/model/tokenizer_data.h"

namespace brigade::model {

// One for each tokenizer.ggml.model that can be read; make_tokenizer chooses.

/// "gpt2": text is cut by a pre-tokenizer, and each piece's bytes are merged by rank.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> make_byte_bpe_tokenizer(
    const TokenizerData& data);

/// "llama": SentencePiece's BPE over characters, merged by score; a character that is no token
/// becomes its bytes' tokens.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> make_sentencepiece_tokenizer(
    const TokenizerData& data);

/// "t5": SentencePiece's unigram model over characters that a map has normalised; the cut with the
/// largest sum of scores.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> make_unigram_tokenizer(
    const TokenizerData& data);

}  // namespace brigade::model
