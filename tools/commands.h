// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/api_client.h"

/// The commands that talk to a running router. Each returns what went wrong; results go to standard
/// output.
namespace brigade::tools {

struct GenerateOptions {
  std::string prompt;  ///< `-`: all of standard input
  bool raw = false;    ///< complete the text as it is, without the chat template
  std::string model;   ///< empty: the first one that the router serves
  std::uint32_t max_tokens = 256;
  double temperature = 0;
  double top_p = 1;
  std::int64_t seed = -1;  ///< -1: none
  std::int64_t top_k = 0;  ///< 0: all tokens
  double min_p = 0;
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::string> stop;
  std::string system;  ///< system message; empty: none
  bool stats = false;  ///< afterwards, say on standard error what ran where and how fast
};

/// Streams the answer to one prompt.
[[nodiscard]] Status run_prompt(const ApiClient& api, const GenerateOptions& options);

/// A conversation: a line is a message, the history is sent along; `/clear` forgets it, `/quit` or
/// the end of input leaves. Ctrl-C stops an answer.
[[nodiscard]] Status chat(const ApiClient& api, const GenerateOptions& options);

[[nodiscard]] Status show_status(const ApiClient& api, bool as_json);

/// Starts draining a replica; with `wait_s` above 0, waits that long for it to be gone.
[[nodiscard]] Status drain(const ApiClient& api, std::int64_t replica, std::uint32_t wait_s);

struct TokenizeOptions {
  std::string text;      ///< `-`: all of standard input
  std::string model;     ///< path of a GGUF file: tokenize here; empty: ask the router
  bool special = false;  ///< the texts of special tokens become those tokens
  bool as_json = false;
};
/// One line a token, its id and its text. `api` is used only without a model path.
[[nodiscard]] Status tokenize_here(const TokenizeOptions& options);
[[nodiscard]] Status tokenize_by_router(const ApiClient& api, const TokenizeOptions& options);

}  // namespace brigade::tools
