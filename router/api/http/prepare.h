// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/http/error.h"
#include "router/api/http/parse.h"
#include "router/api/service.h"

namespace brigade::router {

struct PreparedPrompt {
  std::vector<std::int32_t> ids;
  std::string echo;        ///< the prompt as text; only with echo
  bool bos_added = false;  ///< the first id is not of the client's text
};

/// A generation ready to be submitted: prompts x n requests, choice i of prompt p at index p * n +
/// i.
struct PreparedGeneration {
  std::shared_ptr<const ServedModel> model;
  std::vector<PreparedPrompt> prompts;
  wire::GenerationParams params;
  std::vector<std::vector<std::int32_t>> bad_words;  ///< as tokens
  AnswerOptions answer;
  std::uint64_t first_group = 0;  ///< of Request::group: one for each prompt from here on

  [[nodiscard]] std::size_t num_choices() const { return prompts.size() * answer.n; }
  /// The request of one choice. Choices of one seed must differ, and repeat: choice i draws with
  /// seed + i.
  [[nodiscard]] Request request(std::size_t choice) const;
};

/// From the body to requests: parses, finds the model, tokenizes, checks against the context. On
/// the tokenizer pool.
[[nodiscard]] std::optional<ApiError> prepare_generation(const Service& service,
                                                         std::string_view body, Api api,
                                                         PreparedGeneration& out);

/// No name means the only model.
[[nodiscard]] std::optional<ApiError> resolve_model(const Service& service, const std::string& name,
                                                    std::shared_ptr<const ServedModel>& out);

/// The answers of /tokenize and /detokenize, as vLLM gives them. On the tokenizer pool.
[[nodiscard]] HttpReply answer_tokenize(const Service& service, std::string_view body);
[[nodiscard]] HttpReply answer_detokenize(const Service& service, std::string_view body);

}  // namespace brigade::router
