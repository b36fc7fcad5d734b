// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::model::jinja {

enum class TokenKind : std::uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,  ///< `text` says which
  kEnd,       ///< of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 0;
  std::string text;  ///< data, name, operator; a string with its escapes resolved
  std::int64_t integer = 0;
  double number = 0;
};

/// For messages: what the token is.
[[nodiscard]] std::string describe(const Token& token);

/// Cuts a template into tokens as Jinja2 does with trim_blocks and lstrip_blocks: newlines become
/// \n, one at the end of the source goes, `-` strips white space, `+` keeps it; comments and raw
/// blocks are resolved here. Throws Error (kInvalidArgument, naming the line). The last token is
/// kEnd.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace brigade::model::jinja
