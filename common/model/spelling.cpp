// SPDX-License-Identifier: Apache-2.0
#include "common/model/spelling.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/base/strings.h"

namespace brigade::model {
namespace {

std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const std::size_t high = kDigits.find(text[3]);
  const std::size_t low = kDigits.find(text[4]);
  if (high == std::string::npos || low == std::string::npos) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

}  // namespace

ByteIds byte_ids(const Vocabulary& vocabulary) {
  ByteIds ids;
  ids.fill(kNoToken);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types[id] == TokenType::kByte) {
      ids[static_cast<std::uint8_t>(vocabulary.bytes[id][0])] = id;
    }
  }
  return ids;
}

void TokenAppender::add(std::int32_t id) {
  ids_.push_back(id);
  after_unknown_ = false;
}

void TokenAppender::add_unknown(std::string_view character) {
  const bool is_unknown = !add_bytes(character);
  if (is_unknown && !after_unknown_ && vocabulary_.unknown_id) {
    ids_.push_back(*vocabulary_.unknown_id);
  }
  after_unknown_ = is_unknown;
}

/// False where a byte has no token: then nothing is appended.
bool TokenAppender::add_bytes(std::string_view bytes) {
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<std::uint8_t>(byte)]; };
  const bool all =
      std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return id_of(byte) != kNoToken; });
  if (!all) return false;
  for (const char byte : bytes)
    ids_.push_back(id_of(byte));
  return true;
}

std::string with_spaces(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool is_space = text.starts_with(kSpaceText);
    out += is_space ? ' ' : text[0];
    text.remove_prefix(is_space ? kSpaceText.size() : 1);
  }
  return out;
}

Result<std::string> decode_spelling(std::string_view text, TokenType type) {
  if (type != TokenType::kByte) return with_spaces(text);
  const std::optional<std::uint8_t> byte = parse_byte_token(text);
  if (!byte)
    return data_loss(str_cat("is a byte token and ", quoted(text), ", not <0x00> to <0xFF>"));
  return std::string(1, static_cast<char>(*byte));
}

Status check_scores(const TokenizerData& data) {
  if (data.scores.size() != data.tokens.size()) {
    return data_loss(str_cat("tokenizer.ggml.scores has ", data.scores.size(), " entries for ",
                             data.tokens.size(), " tokens"));
  }
  for (std::size_t i = 0; i < data.scores.size(); ++i) {
    if (!std::isfinite(data.scores[i])) {
      return data_loss(str_cat("tokenizer.ggml.scores[", i, "] is ", data.scores[i]));
    }
  }
  return {};
}

}  // namespace brigade::model
