// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "common/base/random.h"
#include "common/wire/codec.h"
#include "tests/common/wire/dump.h"
#include "tests/common/wire/samples.h"

namespace brigade::wire {
namespace {

/// Padding at a buffer's end may be missing and the rest still be whole.
constexpr std::size_t kPadding = 8;

using Bytes = std::vector<std::byte>;

template <typename Message>
Bytes encoded(const Message& message) {
  Encoder encoder;
  const auto bytes = encoder.encode(message);
  return {bytes.begin(), bytes.end()};
}

/// What decodes at all can be encoded and decoded again to the same: nothing half-understood gets
/// through.
template <typename Message, typename Decode>
void check_harmless(const Bytes& bytes, Decode decode) {
  const Result<Message> decoded = decode(bytes);
  if (!decoded.ok()) {
    REQUIRE(decoded.status().code() == StatusCode::kDataLoss);
    return;
  }
  const Result<Message> again = decode(encoded(decoded.value()));
  REQUIRE_MESSAGE(again.ok(), again.status().message());
  REQUIRE(dump(again.value()) == dump(decoded.value()));
}

template <typename Message, typename Decode>
void abuse(const std::vector<Message>& samples, Decode decode) {
  std::uint64_t draw = 0;
  const auto random = [&draw](std::uint64_t bound) { return random_bits(42, draw++) % bound; };
  for (const Message& sample : samples) {
    const Bytes bytes = encoded(sample);
    CAPTURE(sample.index());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      check_harmless<Message>(cut, decode);
      if (size + kPadding <= bytes.size()) REQUIRE_FALSE(decode(cut).ok());
    }
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      Bytes flipped = bytes;
      flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      check_harmless<Message>(flipped, decode);
    }
    for (int round = 0; round < 500; ++round) {
      Bytes damaged = bytes;
      for (std::uint64_t i = 0; i <= random(8); ++i) {
        damaged[random(damaged.size())] = static_cast<std::byte>(random(256));
      }
      check_harmless<Message>(damaged, decode);
    }
  }
  for (int round = 0; round < 500; ++round) {
    Bytes noise(random(200));
    for (std::byte& byte : noise)
      byte = static_cast<std::byte>(random(256));
    check_harmless<Message>(noise, decode);
  }
}

}  // namespace

TEST_CASE("messages of workers cut anywhere or damaged are refused or harmless") {
  abuse(from_worker_samples(), decode_from_worker);
}
TEST_CASE("commands cut anywhere or damaged are refused or harmless") {
  abuse(to_worker_samples(), decode_to_worker);
}
TEST_CASE("link messages cut anywhere or damaged are refused or harmless") {
  abuse(stage_link_samples(), decode_stage_link);
}
TEST_CASE("requests cut anywhere or damaged are refused or harmless") {
  abuse(to_router_samples(), decode_to_router);
}
TEST_CASE("answers cut anywhere or damaged are refused or harmless") {
  abuse(from_router_samples(), decode_from_router);
}

}  // namespace brigade::wire
