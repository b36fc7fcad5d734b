// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <string_view>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/model/gguf.h"
#include "common/model/tokenizer_data.h"

namespace brigade::model {
namespace {

Result<std::optional<std::int64_t>> optional_id(const GgufFile& file, std::string_view key) {
  if (!file.has(key)) return std::optional<std::int64_t>();
  ASSIGN_OR_RETURN(const std::int64_t id, file.integer(key));
  return std::optional<std::int64_t>(id);
}

Result<std::optional<bool>> optional_flag(const GgufFile& file, std::string_view key) {
  if (!file.has(key)) return std::optional<bool>();
  ASSIGN_OR_RETURN(const bool flag, file.boolean(key));
  return std::optional<bool>(flag);
}

Result<std::vector<std::string>> owned_strings(const GgufFile& file, std::string_view key) {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> views, file.strings(key));
  return std::vector<std::string>(views.begin(), views.end());
}

/// An array of bytes; empty when it is missing.
Result<std::string> optional_bytes(const GgufFile& file, std::string_view key) {
  std::string bytes;
  if (!file.has(key)) return bytes;
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, file.integers(key));
  bytes.reserve(values.size());
  for (const std::int64_t value : values) {
    if (value < -128 || value > 255) return data_loss(str_cat(key, " holds ", value, ", no byte"));
    bytes += static_cast<char>(value);
  }
  return bytes;
}

/// Only the model's name tells that its tokens have this property; llama.cpp goes by it too.
bool is_phi3(const GgufFile& file) {
  constexpr std::string_view kName = "general.name";
  constexpr std::string_view kArchitecture = "general.architecture";
  std::string names;
  for (const std::string_view key : {kName, kArchitecture}) {
    const auto value = file.has(key) ? file.string(key) : Result<std::string_view>("");
    if (value.ok()) names += str_cat(*value, "\n");
  }
  std::transform(names.begin(), names.end(), names.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return names.find("phi-3") != std::string::npos || names.find("phi3") != std::string::npos;
}

Status read_flags(const GgufFile& file, TokenizerData& data) {
  ASSIGN_OR_RETURN(data.add_bos, optional_flag(file, "tokenizer.ggml.add_bos_token"));
  ASSIGN_OR_RETURN(data.add_eos, optional_flag(file, "tokenizer.ggml.add_eos_token"));
  ASSIGN_OR_RETURN(data.add_space_prefix, optional_flag(file, "tokenizer.ggml.add_space_prefix"));
  ASSIGN_OR_RETURN(const std::optional<bool> remove,
                   optional_flag(file, "tokenizer.ggml.remove_extra_whitespaces"));
  data.remove_extra_whitespaces = remove.value_or(false);
  data.strip_after_control = data.model == "llama" && is_phi3(file);
  return {};
}

}  // namespace

Result<TokenizerData> read_tokenizer_data(const GgufFile& file) {
  TokenizerData data;
  ASSIGN_OR_RETURN(data.model, file.string("tokenizer.ggml.model"));
  if (file.has("tokenizer.ggml.pre")) {
    ASSIGN_OR_RETURN(data.pre, file.string("tokenizer.ggml.pre"));
  }
  ASSIGN_OR_RETURN(data.tokens, owned_strings(file, "tokenizer.ggml.tokens"));
  if (data.model == "gpt2") {
    ASSIGN_OR_RETURN(data.merges, owned_strings(file, "tokenizer.ggml.merges"));
  } else if (data.model == "llama" || data.model == "t5") {
    ASSIGN_OR_RETURN(data.scores, file.numbers("tokenizer.ggml.scores"));
  }
  if (data.model == "t5") {
    ASSIGN_OR_RETURN(data.charsmap, optional_bytes(file, "tokenizer.ggml.precompiled_charsmap"));
  }
  if (file.has("tokenizer.ggml.token_type")) {
    ASSIGN_OR_RETURN(data.types, file.integers("tokenizer.ggml.token_type"));
  }
  ASSIGN_OR_RETURN(data.bos_id, optional_id(file, "tokenizer.ggml.bos_token_id"));
  ASSIGN_OR_RETURN(data.eos_id, optional_id(file, "tokenizer.ggml.eos_token_id"));
  ASSIGN_OR_RETURN(data.eot_id, optional_id(file, "tokenizer.ggml.eot_token_id"));
  ASSIGN_OR_RETURN(data.eom_id, optional_id(file, "tokenizer.ggml.eom_token_id"));
  ASSIGN_OR_RETURN(data.unknown_id, optional_id(file, "tokenizer.ggml.unknown_token_id"));
  RETURN_IF_ERROR(read_flags(file, data));
  return data;
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const GgufFile& file) {
  ASSIGN_OR_RETURN(const TokenizerData data, read_tokenizer_data(file));
  if (data.model == "gpt2" && (data.pre.empty() || data.pre == "default")) {
    log_warning(str_cat(file.path(), ": tokenizer.ggml.pre is ",
                        data.pre.empty() ? "missing" : "\"default\"",
                        ": text is cut as llama.cpp cuts it then, which may not be how the model "
                        "learnt it; answers may suffer"));
  }
  return make_tokenizer(data);
}

}  // namespace brigade::model
