// SPDX-License-Identifier: Apache-2.0
#include "common/model/vocabulary.h"

#include <algorithm>
#include <utility>

#include "common/base/strings.h"

namespace brigade::model {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;

/// Texts of tokens that end a turn or a document, as llama.cpp knows them.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|eom_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "<|end_of_text|>",
                                          "<|end_of_turn|>",
                                          "<turn|>",
                                          "<｜end▁of▁sentence｜>"};

class Builder final {
 public:
  Builder(const TokenizerData& data, const TokenDecoder& decode) : data_(data), decode_(decode) {}

  Result<Vocabulary> build() {
    RETURN_IF_ERROR(read_types());
    RETURN_IF_ERROR(read_tokens());
    RETURN_IF_ERROR(read_ids());
    out_.add_bos = data_.add_bos.value_or(false) && out_.bos_id;
    out_.add_eos = data_.add_eos.value_or(false) && out_.eos_id;
    out_.add_space_prefix = data_.add_space_prefix.value_or(false);
    out_.strip_after_control = data_.strip_after_control;
    return std::move(out_);
  }

 private:
  Status read_types() {
    if (data_.tokens.empty()) return data_loss("tokenizer.ggml.tokens is empty");
    if (data_.tokens.size() > kMaxTokens) {
      return data_loss(str_cat("tokenizer.ggml.tokens has ", data_.tokens.size(),
                               " entries, more than ", kMaxTokens));
    }
    out_.types.assign(data_.tokens.size(), TokenType::kNormal);
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
      out_.types[i] = static_cast<TokenType>(data_.types[i]);
    }
    return {};
  }

  Status read_tokens() {
    out_.bytes.reserve(data_.tokens.size());
    for (std::size_t i = 0; i < data_.tokens.size(); ++i) {
      const std::string& text = data_.tokens[i];
      const TokenType type = out_.types[i];
      const bool is_control = type == TokenType::kControl || type == TokenType::kUnknown;
      auto bytes = decode_(text, type);
      if (!bytes.ok()) {
        return bytes.status().with_context(str_cat("tokenizer.ggml.tokens[", i, "]"));
      }
      out_.bytes.push_back(std::move(bytes).value());
      if (is_control || type == TokenType::kUserDefined) {
        RETURN_IF_ERROR(add_special(out_.bytes.back(), static_cast<std::int32_t>(i)));
      }
    }
    return {};
  }

  Status add_special(const std::string& text, std::int32_t id) {
    if (text.empty() || text.size() > SpecialTokens::kMaxLength) {
      return data_loss(str_cat("tokenizer.ggml.tokens[", id, "] is special and ", text.size(),
                               " bytes long, not 1 to ", SpecialTokens::kMaxLength));
    }
    out_.special.add(text, id);
    if (out_.types[id] == TokenType::kUserDefined) out_.always.add(text, id);
    const bool ends =
        std::find(std::begin(kEndTexts), std::end(kEndTexts), text) != std::end(kEndTexts);
    if (ends) out_.end_ids.push_back(id);
    return {};
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
    ASSIGN_OR_RETURN(out_.bos_id, read_id("tokenizer.ggml.bos_token_id", data_.bos_id));
    ASSIGN_OR_RETURN(out_.eos_id, read_id("tokenizer.ggml.eos_token_id", data_.eos_id));
    ASSIGN_OR_RETURN(out_.unknown_id, read_id("tokenizer.ggml.unknown_token_id", data_.unknown_id));
    ASSIGN_OR_RETURN(const auto eot_id, read_id("tokenizer.ggml.eot_token_id", data_.eot_id));
    ASSIGN_OR_RETURN(const auto eom_id, read_id("tokenizer.ggml.eom_token_id", data_.eom_id));
    std::vector<std::int32_t>& ends = out_.end_ids;
    for (const auto& id : {out_.eos_id, eot_id, eom_id}) {
      if (id) ends.push_back(*id);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return {};
  }

  const TokenizerData& data_;
  const TokenDecoder& decode_;
  Vocabulary out_;
};

}  // namespace

bool Vocabulary::strips_after(std::int32_t id) const {
  return strip_after_control && types[id] == TokenType::kControl && bytes[id] != "<s>" &&
         bytes[id] != "<|endoftext|>";
}

Result<TokenIndex> index_tokens(const TokenizerData& data) {
  TokenIndex index;
  index.reserve(data.tokens.size());
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const auto [it, is_new] = index.emplace(data.tokens[i], static_cast<std::int32_t>(i));
    if (!is_new) {
      return data_loss(str_cat("tokenizer.ggml.tokens[", i, "] ", quoted(data.tokens[i]),
                               " is also [", it->second, "]"));
    }
  }
  return index;
}

Result<Vocabulary> make_vocabulary(const TokenizerData& data, const TokenDecoder& decode) {
  return Builder(data, decode).build();
}

}  // namespace brigade::model
