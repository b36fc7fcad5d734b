// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"
#include "common/model/special_tokens.h"
#include "common/model/tokenizer_data.h"

namespace brigade::model {

/// Token texts as the file writes them -> id.
using TokenIndex = std::unordered_map<std::string_view, std::int32_t>;

/// The tokens of a model, checked, and what is special among them: what every algorithm shares.
struct Vocabulary {
  std::vector<std::string> bytes;  ///< by id: what the token stands for in text
  std::vector<TokenType> types;    ///< by id
  SpecialTokens always;            ///< found in any text: user-defined tokens
  SpecialTokens special;           ///< found in trusted text: those, control and unknown tokens
  std::optional<std::int32_t> bos_id;
  std::optional<std::int32_t> eos_id;
  std::optional<std::int32_t> unknown_id;
  std::vector<std::int32_t> end_ids;  ///< ascending
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  ///< text starts with a space that is not in it
  bool strip_after_control = false;

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(bytes.size()); }
  [[nodiscard]] bool is_normal(std::int32_t id) const { return types[id] == TokenType::kNormal; }
  [[nodiscard]] bool is_control(std::int32_t id) const {
    return types[id] == TokenType::kControl || types[id] == TokenType::kUnknown;
  }
  /// Whether white space after the token belongs to it.
  [[nodiscard]] bool strips_after(std::int32_t id) const;
};

/// Which token each text is, views into `data`. An error names two tokens of the same text.
[[nodiscard]] Result<TokenIndex> index_tokens(const TokenizerData& data);

/// The bytes that the text of a token stands for; the error says what is wrong with it. Special
/// tokens are found in text by these.
using TokenDecoder = std::function<Result<std::string>(std::string_view text, TokenType type)>;

/// Checks tokens, types and ids; flags that are not given are false. Tokens that end a generation
/// are eos, eot and eom, and control tokens of the texts that such tokens have in known models,
/// because most files name only one of them. An error names the key and the entry.
[[nodiscard]] Result<Vocabulary> make_vocabulary(const TokenizerData& data,
                                                 const TokenDecoder& decode);

}  // namespace brigade::model
