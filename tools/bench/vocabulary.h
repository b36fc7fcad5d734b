// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/api_client.h"

namespace brigade::tools {

/// Common words, and the tokens that the served model's tokenizer makes of them: what prompts are
/// put together from.
struct Vocabulary {
  std::vector<std::int32_t> ids;   ///< tokens that are ordinary text
  std::vector<std::string> words;  ///< each with a blank before it
  double tokens_per_word = 1;      ///< about 1: the words are common ones

  /// Asks the server's /tokenize.
  static Result<Vocabulary> fetch(const ApiClient& api, const std::string& model);
};

}  // namespace brigade::tools
