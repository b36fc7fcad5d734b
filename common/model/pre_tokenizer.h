// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace brigade::model {

/// Cuts text into the pieces that BPE works in. Concatenated, the pieces are the text. Immutable,
/// safe from any thread.
class PreTokenizer {
 public:
  /// By the value of tokenizer.ggml.pre. kInvalidArgument naming an unknown one, with those known.
  static Result<std::unique_ptr<const PreTokenizer>> make(std::string_view name);
  virtual ~PreTokenizer() = default;

  /// Appends the pieces, views into `text` (valid UTF-8), none of them empty. Linear in the text's
  /// length.
  virtual void split(std::string_view text, std::vector<std::string_view>& pieces) const = 0;
};

}  // namespace brigade::model
