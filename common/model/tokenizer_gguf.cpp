// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "common/model/gguf.h"
#include "common/model/tokenizer_data.h"

namespace brigade::model {
namespace {

Result<std::optional<std::int64_t>> optional_id(const GgufFile& file, std::string_view key) {
  if (!file.has(key)) return std::optional<std::int64_t>();
  ASSIGN_OR_RETURN(const std::int64_t id, file.integer(key));
  return std::optional<std::int64_t>(id);
}

Result<std::vector<std::string>> owned_strings(const GgufFile& file, std::string_view key) {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> views, file.strings(key));
  return std::vector<std::string>(views.begin(), views.end());
}

}  // namespace

Result<TokenizerData> read_tokenizer_data(const GgufFile& file) {
  TokenizerData data;
  ASSIGN_OR_RETURN(data.model, file.string("tokenizer.ggml.model"));
  ASSIGN_OR_RETURN(data.pre, file.string("tokenizer.ggml.pre"));
  ASSIGN_OR_RETURN(data.tokens, owned_strings(file, "tokenizer.ggml.tokens"));
  ASSIGN_OR_RETURN(data.merges, owned_strings(file, "tokenizer.ggml.merges"));
  if (file.has("tokenizer.ggml.token_type")) {
    ASSIGN_OR_RETURN(data.types, file.integers("tokenizer.ggml.token_type"));
  }
  ASSIGN_OR_RETURN(data.bos_id, optional_id(file, "tokenizer.ggml.bos_token_id"));
  ASSIGN_OR_RETURN(data.eos_id, optional_id(file, "tokenizer.ggml.eos_token_id"));
  ASSIGN_OR_RETURN(data.eot_id, optional_id(file, "tokenizer.ggml.eot_token_id"));
  ASSIGN_OR_RETURN(data.eom_id, optional_id(file, "tokenizer.ggml.eom_token_id"));
  if (file.has("tokenizer.ggml.add_bos_token")) {
    ASSIGN_OR_RETURN(data.add_bos, file.boolean("tokenizer.ggml.add_bos_token"));
  }
  return data;
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const GgufFile& file) {
  ASSIGN_OR_RETURN(const TokenizerData data, read_tokenizer_data(file));
  return make_tokenizer(data);
}

}  // namespace brigade::model
