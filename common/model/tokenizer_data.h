// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/tokenizer.h"

namespace brigade::model {

/// tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

/// What a model file says of its tokenizer, as it says it: nothing is checked yet. What is not
/// given has the default of the algorithm.
struct TokenizerData {
  std::string model;                ///< tokenizer.ggml.model: the algorithm
  std::string pre;                  ///< tokenizer.ggml.pre; empty: missing
  std::vector<std::string> tokens;  ///< by id, in the alphabet of the algorithm
  std::vector<std::int64_t> types;  ///< TokenType by id; empty: all normal
  std::vector<std::string> merges;  ///< gpt2: "left right", best first
  std::vector<double> scores;       ///< llama, t5: by id, the best has the highest
  std::string charsmap;             ///< t5: the bytes of a Charsmap; empty: the identity
  std::optional<std::int64_t> bos_id;
  std::optional<std::int64_t> eos_id;
  std::optional<std::int64_t> eot_id;
  std::optional<std::int64_t> eom_id;
  std::optional<std::int64_t> unknown_id;
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;
  bool remove_extra_whitespaces = false;
  /// Phi-3: a control token swallows the white space after it, which no key of the file says.
  bool strip_after_control = false;
};

/// The keys tokenizer.ggml.*. An error names the key.
[[nodiscard]] Result<TokenizerData> read_tokenizer_data(const GgufFile& file);

/// Checks the data and builds the tokenizer. An error names the key (and the entry) at fault.
[[nodiscard]] Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const TokenizerData& data);

}  // namespace brigade::model
