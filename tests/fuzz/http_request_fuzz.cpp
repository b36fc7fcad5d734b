// SPDX-License-Identifier: Apache-2.0
// Bytes from a client, from the first one to a request that is ready to be submitted. The first
// byte says how the rest is taken: as HTTP, in pieces of some size, or as the body of a request.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/config/api_keys.h"
#include "router/api/http/cors.h"
#include "router/api/http/gate.h"
#include "router/api/http/head.h"
#include "router/api/http/prepare.h"
#include "router/api/http/request_parser.h"
#include "router/api/http/routes.h"
#include "router/api/http/trace_context.h"
#include "tests/support/fake_service.h"

namespace brigade::router {
namespace {

constexpr std::size_t kMaxHeader = 4096;
constexpr std::size_t kMaxBody = 16384;

struct Outcome {
  int status = 0;  ///< of the error; 200 when whole, 0 when more is needed
  std::size_t unused = 0;
  RequestHead head;
  std::string body;

  bool operator==(const Outcome& other) const {
    return status == other.status && body == other.body && head.fields == other.head.fields &&
           head.target == other.head.target && (status != 200 || unused == other.unused);
  }
};

Outcome parse(std::string_view text, std::size_t piece) {
  RequestParser parser(kMaxHeader, kMaxBody);
  Outcome out;
  std::string input;
  while (true) {
    const RequestParser::Step step = parser.put(input);
    INVARIANT_LE(step.used, input.size());
    input.erase(0, step.used);
    switch (step.event) {
      case RequestParser::Event::kError:
        out.status = parser.error().status;
        return out;
      case RequestParser::Event::kHead:
        out.head = parser.head();
        break;
      case RequestParser::Event::kDone:
        out.status = 200;
        out.unused = input.size() + text.size();
        out.body = parser.take_body();
        INVARIANT_LE(out.body.size(), kMaxBody);
        return out;
      case RequestParser::Event::kNeedMore:
        if (text.empty()) return out;
        input += text.substr(0, piece);
        text.remove_prefix(std::min(piece, text.size()));
    }
  }
}

/// However the bytes are cut, they are the same request. What is wrong in a head may be seen only
/// at its end when it comes in pieces: then nothing has been taken for a request, and it fails
/// there.
void check_pieces(std::string_view text, std::size_t piece, const Outcome& whole) {
  const Outcome pieces = parse(text, piece);
  if (whole.status >= 400 && pieces.status == 0) {
    const Outcome ended = parse(std::string(text) + "\r\n\r\n", piece);
    INVARIANT(ended.status >= 400) << whole.status << " whole, " << ended.status << " in pieces of "
                                   << piece << " when it has ended";
    return;
  }
  INVARIANT(whole == pieces) << whole.status << " whole, " << pieces.status << " in pieces of "
                             << piece;
}

/// A generation is ready, or there is an error that says why not.
void prepare(std::string_view body) {
  static const testing::FakeService service;
  for (const Api api : {Api::kCompletions, Api::kChat}) {
    PreparedGeneration prepared;
    const auto error = prepare_generation(service, body, api, prepared);
    if (error) {
      INVARIANT(error->status >= 400 && error->status < 600) << error->message;
      INVARIANT(!to_json(*error).empty());
      continue;
    }
    for (std::size_t i = 0; i < prepared.num_choices() && i < 16; ++i)
      INVARIANT(!prepared.request(i).prompt.empty());
  }
  (void)answer_tokenize(service, body);
  (void)answer_detokenize(service, body);
}

void use(const Outcome& request) {
  if (request.head.method.empty()) return;
  const auto error = check_head(request.head, {.allowed_hosts = {"mine"}});
  static Gate gate = [] {
    Gate with_key;
    with_key.set_keys({.keys = {{.id = "0123abcd", .hash = std::string(64, '0')}}});
    return with_key;
  }();
  std::shared_ptr<Account> account;
  INVARIANT(gate.identify(request.head, Scope::kInference, account));  // the key has no such hash
  const std::string traceparent = traceparent_of(request.head);
  INVARIANT(trace_id_of(traceparent).size() == (traceparent.empty() ? 0U : 32U));
  const std::string lines = cors_headers(request.head, {"*"});
  INVARIANT(lines.find("\n\r") == std::string::npos && lines.find("\r\n\r") == std::string::npos);
  (void)answer_preflight(request.head, {"*"});
  (void)request_id_of(request.head);
  (void)Routes::find(path_of(request.head.target));
  if (!error && request.status == 200) prepare(request.body);
}

}  // namespace
}  // namespace brigade::router

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace brigade::router;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 0) {
    prepare(text);
    return 0;
  }
  const Outcome whole = parse(text, text.size() + 1);
  check_pieces(text, data[0], whole);
  use(whole);
  return 0;
}
