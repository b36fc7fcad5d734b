// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/topology.h"

namespace brigade::tools {

struct PerplexityOptions {
  std::string text;            ///< path; `-`: standard input
  std::int64_t context = 512;  ///< tokens of a window
  std::int64_t stride = 0;     ///< tokens from window to window; 0: the context
  bool as_json = false;
};

/// Tokens [begin, end) are seen, those from `first_scored` on count.
struct ScoreWindow {
  std::size_t begin = 0;
  std::size_t first_scored = 0;
  std::size_t end = 0;
};

/// The windows of a text, as llama.cpp's perplexity takes them: one after another, each scored in
/// its second half but for that half's first token; tokens past the last whole window do not count.
/// With a stride below the context windows overlap, and the last `stride` tokens of each count. A
/// text shorter than the context is one window.
[[nodiscard]] std::vector<ScoreWindow> plan_windows(std::size_t num_tokens, std::size_t context,
                                                    std::size_t stride);

/// Negative log-likelihoods, added up.
class NllSum final {
 public:
  void add(double logprob);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double mean() const;            ///< nats a token
  [[nodiscard]] double standard_error() const;  ///< of the mean; 0 below two tokens
  [[nodiscard]] double perplexity() const;      ///< e^mean

 private:
  std::int64_t count_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

/// `brigade perplexity`: starts the topology, has it score the text's windows, and tells how well
/// the model foresees the text. Progress goes to standard error, the result to standard output.
[[nodiscard]] Status perplexity(config::Topology topology, const PerplexityOptions& options);

}  // namespace brigade::tools
