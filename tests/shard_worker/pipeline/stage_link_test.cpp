// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/pipeline/stage_link.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/base/strings.h"

namespace brigade::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kHidden = 3;

TimePoint after(Duration duration) {
  return Clock::now() + duration;
}

/// Every rank of a grid with its bound link, in one process.
class LinkGrid final {
 public:
  explicit LinkGrid(const std::vector<std::uint32_t>& tp_sizes, bool with_keys = false) {
    assign_ = {.epoch = 5, .max_step_tokens = 64};
    for (std::uint32_t stage = 0; stage < tp_sizes.size(); ++stage) {
      wire::StageInfo info{.layers = {stage, stage + 1}, .tp_size = tp_sizes[stage]};
      links_.emplace_back();
      for (std::uint32_t rank = 0; rank < tp_sizes[stage]; ++rank) {
        StageLink::Options options{.ipc_path = path(stage, rank), .bind_host = "127.0.0.1"};
        if (with_keys) options.keys = net::generate_key_pair().value();
        auto link = StageLink::bind(context_, std::move(options));
        REQUIRE_MESSAGE(link.ok(), link.status().message());
        info.endpoints.push_back((*link)->endpoints());
        info.host_ids.push_back("here");
        info.link_keys.push_back((*link)->public_key());
        links_.back().push_back(std::move(link).value());
      }
      assign_.stages.push_back(info);
    }
  }

  static std::string path(std::uint32_t stage, std::uint32_t rank) {
    return str_cat("/tmp/brigade-link-test-", getpid(), '-', stage, '-', rank, ".sock");
  }
  StageLink& link(std::uint32_t stage, std::uint32_t rank) { return *links_[stage][rank]; }
  net::Context& context() { return context_; }
  wire::Assign& assign() { return assign_; }

  LinkPlan plan(std::uint32_t stage, std::uint32_t rank) {
    wire::Assign assign = assign_;
    assign.pp_stage = stage;
    assign.tp_rank = rank;
    auto plan = make_link_plan(assign, kHidden);
    REQUIRE(plan.ok());
    return *plan;
  }

  /// Calls `body` for every rank at once, each on a thread of its own.
  void each(const std::function<void(std::uint32_t, std::uint32_t)>& body) {
    std::vector<std::jthread> threads;
    for (std::uint32_t stage = 0; stage < links_.size(); ++stage) {
      for (std::uint32_t rank = 0; rank < links_[stage].size(); ++rank) {
        threads.emplace_back([&body, stage, rank] { body(stage, rank); });
      }
    }
  }
  void open_all() {
    each([this](std::uint32_t stage, std::uint32_t rank) {
      const Status status = link(stage, rank).open(plan(stage, rank), {}, after(seconds(20)));
      CHECK_MESSAGE(status.ok(), status.message());
    });
  }

 private:
  net::Context context_;
  wire::Assign assign_;
  std::vector<std::vector<std::unique_ptr<StageLink>>> links_;
};

StepInputs step(std::uint64_t number, std::size_t num_tokens) {
  StepInputs inputs;
  inputs.epoch = 5;
  inputs.step = number;
  inputs.lane = static_cast<std::uint32_t>(number % 3);
  inputs.plan_hash = number * 1000;
  inputs.tokens.assign(num_tokens, 1);
  return inputs;
}

std::vector<float> activations(std::uint64_t number, std::size_t num_tokens) {
  std::vector<float> hidden(num_tokens * kHidden);
  std::iota(hidden.begin(), hidden.end(), static_cast<float>(number * 100));
  return hidden;
}

/// A slot a step: a rank that no activations hold back may read far ahead here, which a TP group's
/// sums never let it.
wire::SampledTokens sampled(std::uint64_t number) {
  return {.epoch = 5,
          .step = number,
          .seq = {static_cast<std::uint32_t>(number)},
          .token = {static_cast<std::int32_t>(number)}};
}

/// What one rank of a grid does for twenty steps.
void run_rank(LinkGrid& grid, std::uint32_t stage, std::uint32_t rank, std::uint32_t last) {
  StageLink& link = grid.link(stage, rank);
  LastSamples samples(32, 100);
  for (std::uint64_t number = 1; number <= 20; ++number) {
    const std::size_t num_tokens = number % 4 == 0 ? 0 : number;
    const StepInputs inputs = step(number, num_tokens);
    const std::vector<float> hidden = activations(number, num_tokens);
    if (stage > 0) {
      std::vector<float> got(hidden.size());
      const Status status = link.receive_hidden(inputs, got, after(seconds(20)));
      CHECK_MESSAGE(status.ok(), status.message());
      CHECK(got == hidden);
    }
    if (stage < last) CHECK(link.send_hidden(inputs, hidden, after(seconds(20))).ok());
    if (stage == last && rank == 0) {
      CHECK(link.send_samples(sampled(number), after(seconds(20))).ok());
    }
    if (stage == 0) {
      CHECK(link.receive_samples(number, samples, after(seconds(20))).ok());
      StepInputs next = step(number + 1, 1);
      next.pending_tokens = {{.row = 0, .seq = static_cast<std::uint32_t>(number), .step = number}};
      CHECK(samples.resolve(next).ok());
      CHECK(next.tokens[0] == static_cast<std::int32_t>(number));
    }
  }
}

TEST_CASE(
    "activations reach every rank of the next stage and samples every rank of the first, in grids "
    "of unequal width") {
  for (const auto& sizes : {std::vector<std::uint32_t>{1, 1}, {1, 3}, {3, 1}, {3, 2}, {2, 1, 3}}) {
    LinkGrid grid(sizes);
    grid.open_all();
    const auto last = static_cast<std::uint32_t>(sizes.size() - 1);
    grid.each([&](std::uint32_t stage, std::uint32_t rank) { run_rank(grid, stage, rank, last); });
  }
}

TEST_CASE("with keys a link carries the same, for the ranks of its replica alone") {
  LinkGrid grid({2, 1}, /*with_keys=*/true);
  grid.each([&](std::uint32_t stage, std::uint32_t rank) {
    CHECK(grid.link(stage, rank).admit(grid.assign()).ok());
  });
  grid.open_all();
  grid.each(
      [&](std::uint32_t stage, std::uint32_t rank) { run_rank(grid, stage, rank, /*last=*/1); });

  for (bool with_key : {false, true}) {
    net::SocketOptions options{.handshake_timeout = milliseconds(300), .routing_id = "stranger"};
    if (with_key) {
      options.keys = net::Keys{.role = net::Role::kWorker,
                               .own = net::generate_key_pair().value(),
                               .server_key = grid.link(1, 0).public_key()};
    }
    auto stranger = net::Socket::dealer(grid.context(), std::move(options));
    REQUIRE(stranger->connect(grid.link(1, 0).endpoints().back()).ok());
    std::vector<net::Frame> frames;
    frames.emplace_back(std::string_view("x"));
    CHECK(stranger->send_until(std::move(frames), after(milliseconds(400))).code() ==
          StatusCode::kDeadlineExceeded);
  }
}

TEST_CASE("a rank with a key and one without do not connect") {
  LinkGrid keyed({1, 1}, /*with_keys=*/true);
  LinkPlan plan = keyed.plan(0, 0);
  plan.hidden_to[0].key.clear();
  CHECK(keyed.link(0, 0).open(plan, {}, after(seconds(5))).code() ==
        StatusCode::kFailedPrecondition);
  wire::Assign assign = keyed.assign();
  assign.stages[0].link_keys[0] = "no key";
  CHECK(keyed.link(0, 0).admit(assign).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a link opens again for the next epoch, and what is left of the old one is dropped") {
  LinkGrid grid({1, 1});
  grid.open_all();
  const std::vector<float> old = activations(1, 2);
  REQUIRE(grid.link(0, 0).send_hidden(step(1, 2), old, after(seconds(5))).ok());
  grid.assign().epoch = 6;
  grid.open_all();
  const std::vector<float> fresh = activations(9, 2);
  REQUIRE(grid.link(0, 0).send_hidden(step(1, 2), fresh, after(seconds(5))).ok());
  std::vector<float> got(fresh.size());
  REQUIRE(grid.link(1, 0).receive_hidden(step(1, 2), got, after(seconds(5))).ok());
  CHECK(got == fresh);
  // Closing its connection may also have taken the old message away with it.
  CHECK(grid.link(1, 0).dropped().other_epoch <= 1);
}

TEST_CASE("a peer that opens the next epoch early is not missed") {
  LinkGrid grid({1, 1});
  grid.open_all();
  const LinkPlan old_plan = grid.plan(1, 0);
  grid.assign().epoch = 6;
  std::jthread early(
      [&] { CHECK(grid.link(0, 0).open(grid.plan(0, 0), {}, after(seconds(20))).ok()); });
  std::vector<float> got(kHidden);
  // Still in the old epoch, this rank reads the other's sign of life for the new one.
  CHECK(grid.link(1, 0).receive_hidden(step(1, 1), got, after(milliseconds(200))).code() ==
        StatusCode::kDeadlineExceeded);
  CHECK(grid.link(1, 0).open(grid.plan(1, 0), {}, after(seconds(20))).ok());
}

TEST_CASE("activations of another step, plan, or shape than awaited are data loss") {
  const StepInputs awaited = step(1, 2);
  StepInputs other_step = step(2, 2);
  StepInputs other_plan = step(1, 2);
  other_plan.plan_hash += 1;
  StepInputs other_shape = step(1, 3);
  for (const StepInputs& sent : {other_step, other_plan, other_shape}) {
    LinkGrid grid({1, 1});
    grid.open_all();
    const auto hidden = activations(1, sent.tokens.size());
    REQUIRE(grid.link(0, 0).send_hidden(sent, hidden, after(seconds(5))).ok());
    std::vector<float> got(2 * kHidden);
    CHECK(grid.link(1, 0).receive_hidden(awaited, got, after(seconds(5))).code() ==
          StatusCode::kDataLoss);
  }
}

TEST_CASE("the same activations twice, or samples out of order, are data loss") {
  LinkGrid grid({1, 1});
  grid.open_all();
  for (int i = 0; i < 2; ++i) {
    REQUIRE(grid.link(0, 0).send_hidden(step(1, 1), activations(1, 1), after(seconds(5))).ok());
  }
  std::vector<float> got(kHidden);
  REQUIRE(grid.link(1, 0).receive_hidden(step(1, 1), got, after(seconds(5))).ok());
  CHECK(grid.link(1, 0).receive_hidden(step(2, 1), got, after(seconds(5))).code() ==
        StatusCode::kDataLoss);

  LastSamples samples(32, 100);
  for (std::uint64_t number : {4, 3}) {
    REQUIRE(grid.link(1, 0).send_samples(sampled(number), after(seconds(5))).ok());
  }
  Status status = grid.link(0, 0).receive_samples(4, samples, after(seconds(5)));
  if (status.ok()) status = grid.link(0, 0).receive_samples(9, samples, after(seconds(5)));
  CHECK(status.code() == StatusCode::kDataLoss);
}

std::vector<net::Frame> frames(std::initializer_list<std::string_view> texts) {
  std::vector<net::Frame> out;
  for (std::string_view text : texts)
    out.emplace_back(text);
  return out;
}

TEST_CASE("garbage and messages of ranks that have no business here are dropped and counted") {
  LinkGrid grid({1, 1});
  grid.open_all();
  auto stranger = net::Socket::dealer(grid.context(), {.max_frames = 2, .routing_id = "stranger"});
  REQUIRE(stranger.ok());
  REQUIRE(stranger->connect(grid.link(1, 0).endpoints()[1]).ok());
  const auto send = [&](std::vector<net::Frame> message) {
    CHECK(stranger->send_until(std::move(message), after(seconds(5))).ok());
  };
  wire::Encoder encoder;
  const auto encoded = [&](const wire::StageLinkMessage& message) {
    std::vector<net::Frame> out;
    out.emplace_back(encoder.encode(message));
    return out;
  };
  send(frames({"garbage"}));
  send(frames({""}));
  send(frames({"a", "b"}));
  send(frames({"a", "b", "c", "d"}));
  wire::ActivationHeader header{.epoch = 5, .step = 1, .num_rows = 1, .hidden_size = kHidden};
  send(encoded(header));  // no payload
  header.from_rank = 7;
  header.num_rows = 0;
  std::vector<net::Frame> wrong_rank = encoded(header);
  wrong_rank.emplace_back();
  send(std::move(wrong_rank));
  send(encoded(sampled(1)));

  std::vector<float> got(kHidden);
  StageLink& link = grid.link(1, 0);
  CHECK(link.receive_hidden(step(1, 1), got, after(milliseconds(300))).code() ==
        StatusCode::kDeadlineExceeded);
  CHECK(link.dropped().malformed == 5);
  CHECK(link.dropped().unexpected == 2);
  REQUIRE(grid.link(0, 0).send_hidden(step(1, 1), activations(1, 1), after(seconds(5))).ok());
  CHECK(link.receive_hidden(step(1, 1), got, after(seconds(5))).ok());
}

TEST_CASE("waits end at their deadline, and at once when stopped") {
  LinkGrid grid({1, 1});
  StageLink& link = grid.link(1, 0);
  // Stage 1 sends its samples to stage 0, which never connects back.
  CHECK(link.open(grid.plan(1, 0), {}, after(milliseconds(60))).code() ==
        StatusCode::kDeadlineExceeded);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(60));
    stop.request_stop();
    link.wake();
  });
  const TimePoint start = Clock::now();
  CHECK(link.open(grid.plan(1, 0), stop.get_token(), after(seconds(60))).code() ==
        StatusCode::kCancelled);
  std::vector<float> got(kHidden);
  CHECK(link.receive_hidden(step(1, 1), got, after(seconds(60))).code() == StatusCode::kCancelled);
  CHECK(Clock::now() - start < seconds(20));
}

TEST_CASE("a link leaves no socket file, and refuses activations larger than it carries") {
  {
    LinkGrid grid({1, 1});
    CHECK(std::filesystem::exists(LinkGrid::path(1, 0)));
    LinkPlan plan = grid.plan(0, 0);
    plan.max_step_tokens = 1U << 20;
    plan.hidden_size = 1U << 10;
    CHECK(grid.link(0, 0).open(plan, {}, after(seconds(1))).code() == StatusCode::kInvalidArgument);
  }
  CHECK_FALSE(std::filesystem::exists(LinkGrid::path(1, 0)));
}

}  // namespace
}  // namespace brigade::worker
