// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <utility>

#include "common/base/strings.h"
#include "common/model/bpe.h"
#include "common/model/chat_template.h"
#include "common/model/pre_tokenizer.h"
#include "common/model/special_tokens.h"
#include "common/model/tokenizer_data.h"
#include "common/model/utf8.h"

namespace brigade::model {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
constexpr std::size_t kMaxMerges = std::size_t{1} << 24;

/// GPT-2's byte-level alphabet: bytes that print (33-126, 161-172, 174-255) stand for themselves as
/// code points, the other 68 are U+0100, U+0101, ... in order.
std::array<char32_t, 256> byte_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    alphabet[byte] = prints ? byte : next++;
  }
  return alphabet;
}

/// The bytes a token's text stands for; the text itself when it has a character outside the
/// alphabet, as HF's ByteLevel decoder does.
std::string bytes_of(const std::string& text, const std::unordered_map<char32_t, char>& bytes) {
  std::string out;
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Step step = utf8_step(text, pos);
    const auto it =
        step.kind == Utf8Step::Kind::kCharacter ? bytes.find(step.code_point) : bytes.end();
    if (it == bytes.end()) return text;
    out += it->second;
    pos += step.length;
  }
  return out;
}

class BpeTokenizer final : public Tokenizer {
 public:
  struct Parts {
    std::unique_ptr<const PreTokenizer> pre;
    std::vector<std::string> bytes;  // by id
    std::vector<TokenType> types;    // by id
    std::unique_ptr<const Bpe> bpe;
    SpecialTokens always;   // user-defined
    SpecialTokens special;  // user-defined and control
    std::optional<std::int32_t> bos_id;
    std::optional<std::int32_t> eos_id;
    std::vector<std::int32_t> end_ids;
    bool add_bos = false;
  };

  explicit BpeTokenizer(Parts parts) : parts_(std::move(parts)) {
    // Two tokens can have the same bytes only when one of them is special: that one is found.
    for (const bool special : {true, false}) {
      for (std::int32_t id = 0; id < vocab_size(); ++id) {
        if (is_special(id) == special) by_text_.emplace(parts_.bytes[id], id);
      }
    }
  }

  void encode(std::string_view text, bool parse_special,
              std::vector<std::int32_t>& ids) const override {
    const PromptSegment segment{std::string(text), parse_special};
    encode_prompt({&segment, 1}, ids);
  }

  void encode_prompt(std::span<const PromptSegment> segments,
                     std::vector<std::int32_t>& ids) const override {
    std::string text;
    std::vector<SpecialTokens::Match> matches;
    for (std::size_t i = 0; i < segments.size();) {
      const std::size_t begin = text.size();
      const bool trusted = segments[i].trusted;
      for (; i < segments.size() && segments[i].trusted == trusted; ++i) {
        append_valid(segments[i].text, text);
      }
      find_special(text, begin, trusted ? parts_.special : parts_.always, matches);
    }
    const std::string_view view = text;
    std::size_t pos = 0;
    for (const SpecialTokens::Match& match : matches) {
      encode_ordinary(view.substr(pos, match.begin - pos), ids);
      ids.push_back(match.id);
      pos = match.begin + match.length;
    }
    encode_ordinary(view.substr(pos), ids);
  }

  [[nodiscard]] std::string_view token_bytes(std::int32_t id, bool special) const override {
    if (id < 0 || id >= vocab_size()) return {};
    if (!special && parts_.types[id] == TokenType::kControl) return {};
    return parts_.bytes[id];
  }

  [[nodiscard]] std::int32_t vocab_size() const override {
    return static_cast<std::int32_t>(parts_.bytes.size());
  }

  [[nodiscard]] bool is_special(std::int32_t id) const override {
    if (id < 0 || id >= vocab_size()) return false;
    return parts_.types[id] == TokenType::kControl || parts_.types[id] == TokenType::kUserDefined;
  }

  [[nodiscard]] std::optional<std::int32_t> find(std::string_view text) const override {
    const auto it = by_text_.find(text);
    if (it == by_text_.end()) return std::nullopt;
    return it->second;
  }

  [[nodiscard]] std::optional<std::int32_t> bos_id() const override { return parts_.bos_id; }
  [[nodiscard]] std::optional<std::int32_t> eos_id() const override { return parts_.eos_id; }
  [[nodiscard]] std::span<const std::int32_t> end_ids() const override { return parts_.end_ids; }
  [[nodiscard]] bool add_bos() const override { return parts_.add_bos; }

 private:
  /// The pattern engine must never see invalid UTF-8, whatever the caller forgot.
  static void append_valid(std::string_view text, std::string& out) {
    if (is_valid_utf8(text)) {
      out += text;
    } else {
      append_lossy_utf8(text, /*final=*/true, out);
    }
  }

  static void find_special(std::string_view text, std::size_t from, const SpecialTokens& tokens,
                           std::vector<SpecialTokens::Match>& matches) {
    while (const auto match = tokens.find(text, from)) {
      matches.push_back(*match);
      from = match->begin + match->length;
    }
  }

  void encode_ordinary(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::vector<std::string_view> pieces;
    parts_.pre->split(text, pieces);
    for (const std::string_view piece : pieces)
      parts_.bpe->encode(piece, ids);
  }

  Parts parts_;
  std::unordered_map<std::string_view, std::int32_t> by_text_;  ///< views into parts_.bytes
};

/// Checks a TokenizerData and turns it into the parts of a tokenizer, step by step.
class Builder final {
 public:
  explicit Builder(const TokenizerData& data) : data_(data) {}

  Result<std::shared_ptr<const Tokenizer>> build() {
    RETURN_IF_ERROR(check_head());
    RETURN_IF_ERROR(read_types());
    RETURN_IF_ERROR(read_tokens());
    RETURN_IF_ERROR(read_merges());
    RETURN_IF_ERROR(read_ids());
    parts_.add_bos = data_.add_bos && parts_.bos_id;
    return std::shared_ptr<const Tokenizer>(std::make_shared<BpeTokenizer>(std::move(parts_)));
  }

 private:
  Status check_head() {
    if (data_.model != "gpt2") {
      return invalid_argument(str_cat("tokenizer.ggml.model is ", quoted(data_.model),
                                      ", and only \"gpt2\" can be read"));
    }
    auto pre = PreTokenizer::make(data_.pre);
    if (!pre.ok()) return pre.status().with_context("tokenizer.ggml.pre");
    parts_.pre = std::move(pre).value();
    if (data_.tokens.empty()) return data_loss("tokenizer.ggml.tokens is empty");
    if (data_.tokens.size() > kMaxTokens) {
      return data_loss(str_cat("tokenizer.ggml.tokens has ", data_.tokens.size(),
                               " entries, more than ", kMaxTokens));
    }
    if (data_.merges.size() > kMaxMerges) {
      return data_loss(str_cat("tokenizer.ggml.merges has ", data_.merges.size(),
                               " entries, more than ", kMaxMerges));
    }
    return {};
  }

  Status read_types() {
    parts_.types.assign(data_.tokens.size(), TokenType::kNormal);
    if (data_.types.empty()) return {};
    if (data_.types.size() != data_.tokens.size()) {
      return data_loss(str_cat("tokenizer.ggml.token_type has ", data_.types.size(),
                               " entries for ", data_.tokens.size(), " tokens"));
    }
    for (std::size_t i = 0; i < data_.types.size(); ++i) {
      if (data_.types[i] < 1 || data_.types[i] > 6) {
        return data_loss(
            str_cat("tokenizer.ggml.token_type[", i, "] is ", data_.types[i], ", not 1 to 6"));
      }
      parts_.types[i] = static_cast<TokenType>(data_.types[i]);
    }
    return {};
  }

  Status read_tokens() {
    std::unordered_map<char32_t, char> bytes;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      bytes[alphabet_[byte]] = static_cast<char>(byte);
    }
    by_text_.reserve(data_.tokens.size());
    parts_.bytes.reserve(data_.tokens.size());
    for (std::size_t i = 0; i < data_.tokens.size(); ++i) {
      const std::string& text = data_.tokens[i];
      const auto id = static_cast<std::int32_t>(i);
      if (!by_text_.emplace(text, id).second) {
        return data_loss(str_cat("tokenizer.ggml.tokens[", i, "] ", quoted(text), " is also [",
                                 by_text_[text], "]"));
      }
      RETURN_IF_ERROR(read_token(text, id, bytes));
    }
    return {};
  }

  Status read_token(const std::string& text, std::int32_t id,
                    const std::unordered_map<char32_t, char>& bytes) {
    const TokenType type = parts_.types[id];
    if (type != TokenType::kControl && type != TokenType::kUserDefined) {
      parts_.bytes.push_back(bytes_of(text, bytes));
      return {};
    }
    if (text.empty() || text.size() > SpecialTokens::kMaxLength) {
      return data_loss(str_cat("tokenizer.ggml.tokens[", id, "] is special and ", text.size(),
                               " bytes long, not 1 to ", SpecialTokens::kMaxLength));
    }
    parts_.bytes.push_back(text);
    parts_.special.add(text, id);
    if (type == TokenType::kUserDefined) parts_.always.add(text, id);
    return {};
  }

  Result<std::int32_t> merge_part(std::size_t index, std::string_view text) {
    const auto it = by_text_.find(text);
    if (it != by_text_.end()) return it->second;
    return data_loss(str_cat("tokenizer.ggml.merges[", index, "] ", quoted(data_.merges[index]),
                             " names ", quoted(text), ", which is no token"));
  }

  Status read_merges() {
    std::vector<Merge> merges;
    merges.reserve(data_.merges.size());
    for (std::size_t i = 0; i < data_.merges.size(); ++i) {
      const std::string& text = data_.merges[i];
      const std::size_t space = text.find(' ', 1);
      if (space == std::string::npos || space + 1 == text.size()) {
        return data_loss(
            str_cat("tokenizer.ggml.merges[", i, "] ", quoted(text), " is not two tokens"));
      }
      const std::string left = text.substr(0, space);
      const std::string right = text.substr(space + 1);
      Merge merge;
      merge.rank = static_cast<std::int32_t>(i);
      ASSIGN_OR_RETURN(merge.left, merge_part(i, left));
      ASSIGN_OR_RETURN(merge.right, merge_part(i, right));
      ASSIGN_OR_RETURN(merge.merged, merge_part(i, left + right));
      merges.push_back(merge);
    }
    parts_.bpe = std::make_unique<const Bpe>(byte_ids(), merges);
    return {};
  }

  /// The token each byte starts as, -1 where there is none.
  [[nodiscard]] std::array<std::int32_t, 256> byte_ids() const {
    std::array<std::int32_t, 256> ids;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::string text;
      append_utf8(alphabet_[byte], text);
      const auto it = by_text_.find(text);
      ids[byte] = it == by_text_.end() ? -1 : it->second;
    }
    return ids;
  }

  Result<std::optional<std::int32_t>> read_id(std::string_view key,
                                              std::optional<std::int64_t> id) {
    if (!id) return std::optional<std::int32_t>();
    if (*id < 0 || *id >= static_cast<std::int64_t>(data_.tokens.size())) {
      return data_loss(str_cat(key, " is ", *id, ", outside the ", data_.tokens.size(), " tokens"));
    }
    return std::optional<std::int32_t>(static_cast<std::int32_t>(*id));
  }

  Status read_ids() {
    ASSIGN_OR_RETURN(parts_.bos_id, read_id("tokenizer.ggml.bos_token_id", data_.bos_id));
    ASSIGN_OR_RETURN(parts_.eos_id, read_id("tokenizer.ggml.eos_token_id", data_.eos_id));
    ASSIGN_OR_RETURN(const auto eot_id, read_id("tokenizer.ggml.eot_token_id", data_.eot_id));
    ASSIGN_OR_RETURN(const auto eom_id, read_id("tokenizer.ggml.eom_token_id", data_.eom_id));
    for (const auto& id : {parts_.eos_id, eot_id, eom_id}) {
      if (id) parts_.end_ids.push_back(*id);
    }
    std::sort(parts_.end_ids.begin(), parts_.end_ids.end());
    parts_.end_ids.erase(std::unique(parts_.end_ids.begin(), parts_.end_ids.end()),
                         parts_.end_ids.end());
    return {};
  }

  const TokenizerData& data_;
  BpeTokenizer::Parts parts_;
  const std::array<char32_t, 256> alphabet_ = byte_alphabet();
  std::unordered_map<std::string_view, std::int32_t> by_text_;  ///< views into data_.tokens
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const TokenizerData& data) {
  return Builder(data).build();
}

}  // namespace brigade::model
