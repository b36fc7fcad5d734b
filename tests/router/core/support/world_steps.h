// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "tests/router/core/support/world.h"

namespace brigade::router::testing {

/// A greedy request that runs to its length.
inline Request request_of(RequestId id, std::size_t num_prompt = 8, std::uint32_t max_tokens = 40) {
  Request request{.id = id, .tenant = "t", .model = "fake"};
  request.prompt.assign(num_prompt, FakeTokenizer::kA + static_cast<std::int32_t>(id % 20));
  request.params.temperature = 0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  return request;
}

inline void bring_up(World& world, std::uint32_t num_workers = 1) {
  for (std::uint32_t i = 0; i < num_workers; ++i)
    world.spawn();
  REQUIRE(world.run_until([&] { return world.router().ready(); }, std::chrono::seconds(10)));
  world.run_for(std::chrono::seconds(1));
}

inline void run_to_end(World& world) {
  REQUIRE(world.run_until([&] { return world.all_ended(); }, std::chrono::seconds(1000)));
}

inline bool says(const World& world, RequestId id, const std::string& text) {
  return world.clients().at(id).last.status.message().find(text) != std::string::npos;
}

inline StatusCode code_of(const World& world, RequestId id) {
  return world.clients().at(id).last.status.code();
}

}  // namespace brigade::router::testing
