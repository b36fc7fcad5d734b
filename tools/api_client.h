// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/http_client.h"
#include "tools/launch.h"
#include "tools/status_view.h"

namespace brigade::tools {

/// How a streamed answer went.
struct StreamSummary {
  std::string text;
  std::string finish_reason;
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  double first_token_s = 0;  ///< from the request to the first text
  double total_s = 0;
};

/// The router's HTTP API as the command line uses it. An error answer of the router becomes a
/// Status with its message.
class ApiClient final {
 public:
  explicit ApiClient(RouterAddress address)
      : http_(std::move(address.http)), admin_(std::move(address.admin)) {}

  [[nodiscard]] const HttpAddress& address() const { return http_.address(); }

  [[nodiscard]] Result<std::string> status_json(Duration timeout) const;
  [[nodiscard]] Result<StatusView> status(Duration timeout) const;
  [[nodiscard]] Status drain(std::int64_t replica) const;
  [[nodiscard]] Result<std::string> first_model() const;
  [[nodiscard]] Result<boost::json::value> tokenize(const boost::json::object& body) const;

  /// The log-probability of each token given those before it; NaN for the first.
  [[nodiscard]] Result<std::vector<double>> score(const std::string& model,
                                                  boost::json::array tokens) const;

  /// Posts a streaming request to /v1/completions or /v1/chat/completions (`stream` is set here)
  /// and hands out the text as it comes. An error event in the stream is a Status.
  [[nodiscard]] Result<StreamSummary> stream(
      const std::string& path, boost::json::object body, bool stop_on_interrupt,
      const std::function<void(std::string_view)>& on_text) const;

 private:
  HttpClient http_;
  HttpClient admin_;
};

}  // namespace brigade::tools
