// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "clients/cpp/brigade_client.h"
#include "common/wire/build_info.h"
#include "router/actors/router_service.h"
#include "router/api/zmq/zmq_door.h"
#include "tests/router/actors/support/scripted_worker.h"
#include "tests/router/core/support/fake_model.h"

namespace brigade::router::testing {

inline TimePoint in_ms(int ms) {
  return Clock::now() + std::chrono::milliseconds(ms);
}

/// True as soon as the condition holds, false at the deadline.
inline bool eventually(const std::function<bool()>& condition, int ms = 10'000) {
  for (const TimePoint deadline = in_ms(ms); Clock::now() < deadline;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

/// A router in this process, with both its sockets and the fake model, and scripted workers to give
/// it.
struct Harness {
  explicit Harness(ZmqDoorOptions door_options = {}, std::optional<net::Keys> keys = std::nullopt) {
    RouterServiceOptions options;
    options.config.schema_hash = wire::schema_hash();
    options.models = {make_fake_model()};
    options.worker_endpoints = {"tcp://127.0.0.1:0"};
    if (keys) REQUIRE(context.allow_peers(keys->peers).ok());
    options.keys = keys;
    auto started = RouterService::start(context, std::move(options));
    REQUIRE_MESSAGE(started.ok(), started.status().message());
    service = std::move(started).value();
    door_options.keys = keys;
    auto opened = ZmqDoor::start(context, std::move(door_options), *service);
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    door = std::move(opened).value();
  }

  std::unique_ptr<ScriptedWorker> add_worker(Duration step_time = {},
                                             std::uint64_t incarnation = 1) {
    const std::uint32_t ready = service->ready_replicas();
    auto worker = std::make_unique<ScriptedWorker>(
        context, ScriptedWorker::Options{.endpoint = service->worker_endpoints().front(),
                                         .routing_id = "worker-" + std::to_string(incarnation),
                                         .incarnation = incarnation,
                                         .step_time = step_time});
    REQUIRE(eventually([&] { return service->ready_replicas() > ready; }));
    return worker;
  }

  std::unique_ptr<client::Client> connect() {
    auto connected = client::Client::connect({.endpoint = door->endpoint()});
    REQUIRE_MESSAGE(connected.ok(), connected.status().message());
    return std::move(connected).value();
  }

  RouterStatus status() {
    auto result = std::make_shared<std::promise<RouterStatus>>();
    auto future = result->get_future();
    service->status([result](RouterStatus s) { result->set_value(std::move(s)); });
    REQUIRE(future.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
    return future.get();
  }

  net::Context context;
  std::unique_ptr<RouterService> service;
  std::unique_ptr<ZmqDoor> door;
};

/// A prompt of letters, and what the scripted worker makes of it.
inline wire::Generate letters(std::uint32_t max_tokens) {
  return {.model = "fake",
          .prompt = wire::TextPrompt{.text = "abcde"},
          .params = {.temperature = 0, .max_tokens = max_tokens}};
}
inline std::string expected_letters(std::uint32_t num_prompt, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i)
    text += letter_at(num_prompt + i);
  return text;
}

}  // namespace brigade::router::testing
