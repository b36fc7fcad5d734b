// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/vocabulary.h"
#include "tools/bench/workload.h"
#include "tools/http_client.h"

namespace brigade::tools {

/// Writes the HTTP requests of a run: streamed, exactly as many tokens as planned (`ignore_eos`),
/// with running usage.
class RequestMaker final {
 public:
  struct Options {
    std::string model;
    bool chat = false;  ///< a message of text; else a prompt of token ids
    double temperature = 0;
    std::uint64_t seed = 1;
  };

  RequestMaker(HttpAddress address, Vocabulary vocabulary, Options options);

  [[nodiscard]] std::uint32_t num_words() const;
  /// `words`: one a token, from [0, num_words()).
  [[nodiscard]] std::string make(const PlannedRequest& request,
                                 const std::vector<std::uint32_t>& words) const;

 private:
  [[nodiscard]] std::string body(const PlannedRequest& request,
                                 const std::vector<std::uint32_t>& words) const;

  HttpAddress address_;
  Vocabulary vocabulary_;
  Options options_;
};

}  // namespace brigade::tools
