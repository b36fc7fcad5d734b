// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/model/tokenizer_data.h"
#include "common/model/vocabulary.h"

// How SentencePiece's vocabularies spell text, whatever the algorithm.
namespace brigade::model {

inline constexpr std::string_view kSpaceText = "\xe2\x96\x81";  ///< a space, U+2581
inline constexpr std::int32_t kNoToken = -1;

/// The token of each byte, or kNoToken.
using ByteIds = std::array<std::int32_t, 256>;

[[nodiscard]] ByteIds byte_ids(const Vocabulary& vocabulary);

/// Appends the tokens of a text, from its start on. Borrows everything.
class TokenAppender final {
 public:
  TokenAppender(const Vocabulary& vocabulary, const ByteIds& byte_ids,
                std::vector<std::int32_t>& ids)
      : vocabulary_(vocabulary), byte_ids_(byte_ids), ids_(ids) {}

  void add(std::int32_t id);
  /// A character that no token has: the tokens of its bytes, or, where a byte has none, the unknown
  /// token, one for a run of such characters (and nothing in a vocabulary without it).
  void add_unknown(std::string_view character);

 private:
  [[nodiscard]] bool add_bytes(std::string_view bytes);

  const Vocabulary& vocabulary_;
  const ByteIds& byte_ids_;
  std::vector<std::int32_t>& ids_;
  bool after_unknown_ = false;
};

/// The text with spaces for the sign.
[[nodiscard]] std::string with_spaces(std::string_view text);

/// A TokenDecoder: what a token's spelling stands for.
[[nodiscard]] Result<std::string> decode_spelling(std::string_view text, TokenType type);

/// There is a finite score for each token; an error names the key.
[[nodiscard]] Status check_scores(const TokenizerData& data);

}  // namespace brigade::model
