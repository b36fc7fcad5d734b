// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "common/wire/codec.h"
#include "tests/common/wire/dump.h"
#include "tests/common/wire/samples.h"

namespace brigade::wire {

TEST_CASE("every field of every client message survives the wire") {
  Encoder encoder;
  for (const ToRouter& message : to_router_samples()) {
    const auto decoded = decode_to_router(encoder.encode(message));
    REQUIRE_MESSAGE(decoded.ok(), decoded.status().message());
    CHECK(dump(decoded.value()) == dump(message));
  }
  for (const FromRouter& message : from_router_samples()) {
    const auto decoded = decode_from_router(encoder.encode(message));
    REQUIRE_MESSAGE(decoded.ok(), decoded.status().message());
    CHECK(dump(decoded.value()) == dump(message));
  }
}

TEST_CASE("numbers that are none are refused before anyone computes with them") {
  Encoder encoder;
  Generate generate;
  generate.params.temperature = kNan;
  CHECK(decode_to_router(encoder.encode(ToRouter(generate)))
            .status()
            .message()
            .find("params.temperature") != std::string::npos);
  generate.params.temperature = 1;
  generate.params.top_p = std::numeric_limits<float>::infinity();
  CHECK_FALSE(decode_to_router(encoder.encode(ToRouter(generate))).ok());
}

TEST_CASE("token texts are none or one a token") {
  Encoder encoder;
  const FromRouter chunk = Chunk{.tokens = {{.token = 1}}, .token_texts = {"a", "b"}};
  CHECK(decode_from_router(encoder.encode(chunk)).status().message().find("output.texts") !=
        std::string::npos);
}

TEST_CASE("a client message over 4 MiB is refused") {
  Encoder encoder;
  const ToRouter big = Generate{.prompt = TextPrompt{.text = std::string(kMaxClientBytes, 'x')}};
  CHECK(decode_to_router(encoder.encode(big)).status().code() == StatusCode::kDataLoss);
}

}  // namespace brigade::wire
