// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/request_maker.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <utility>

#include "common/base/strings.h"

namespace brigade::tools {
namespace {

/// Host as RFC 9112 wants it: what stands in the URL.
std::string host_of(const HttpAddress& address) {
  const std::string url = address.url();
  return url.substr(url.find("//") + 2);
}

}  // namespace

RequestMaker::RequestMaker(HttpAddress address, Vocabulary vocabulary, Options options)
    : address_(std::move(address)),
      vocabulary_(std::move(vocabulary)),
      options_(std::move(options)) {}

std::uint32_t RequestMaker::num_words() const {
  return static_cast<std::uint32_t>(options_.chat ? vocabulary_.words.size()
                                                  : vocabulary_.ids.size());
}

std::string RequestMaker::make(const PlannedRequest& request,
                               const std::vector<std::uint32_t>& words) const {
  const std::string content = body(request, words);
  std::string out = options_.chat ? "POST /v1/chat/completions" : "POST /v1/completions";
  out += " HTTP/1.1\r\nHost: " + host_of(address_);
  out += "\r\nUser-Agent: brigade-bench\r\nContent-Type: application/json";
  if (!address_.api_key.empty()) out += "\r\nAuthorization: Bearer " + address_.api_key;
  out += str_cat("\r\nContent-Length: ", content.size(), "\r\n\r\n");
  out += content;
  return out;
}

std::string RequestMaker::body(const PlannedRequest& request,
                               const std::vector<std::uint32_t>& words) const {
  std::string out = "{\"model\":" + boost::json::serialize(boost::json::string(options_.model));
  if (options_.chat) {
    out += ",\"messages\":[{\"role\":\"user\",\"content\":\"";
    const auto count = static_cast<std::size_t>(
        std::max(1L, std::lround(static_cast<double>(words.size()) / vocabulary_.tokens_per_word)));
    for (std::size_t i = 0; i < count; ++i)
      out += vocabulary_.words[words[i % words.size()]];
    out += "\"}]";
  } else {
    out += ",\"prompt\":";
    char separator = '[';
    for (const std::uint32_t word : words) {
      out += separator;
      out += std::to_string(vocabulary_.ids[word]);
      separator = ',';
    }
    out += ']';
  }
  out += str_cat(",\"max_tokens\":", request.output_tokens,
                 ",\"ignore_eos\":true,\"temperature\":", options_.temperature,
                 ",\"seed\":", options_.seed + request.index);
  out +=
      ",\"stream\":true,\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":"
      "true}";
  return out + "}";
}

}  // namespace brigade::tools
