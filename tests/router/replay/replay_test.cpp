// SPDX-License-Identifier: Apache-2.0
#include "router/replay/replay.h"

#include <doctest/doctest.h>

#include <map>

#include "common/base/log.h"
#include "tests/router/core/support/world.h"

namespace brigade::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeTokenizer;
using testing::World;

Request request_of(RequestId id, std::size_t num_prompt, std::uint32_t max_tokens) {
  Request request{.id = id, .tenant = id % 3 == 0 ? "one" : "other", .model = "fake"};
  for (std::size_t i = 0; i < num_prompt; ++i) {
    request.prompt.push_back(FakeTokenizer::kA + static_cast<std::int32_t>((id * 7 + i) % 26));
  }
  request.params.max_tokens = max_tokens;
  request.params.num_logprobs = id % 4 == 0 ? 2 : -1;
  request.params.stop = {"\xc3\xa9", "zz\"\n"};
  return request;
}

/// A run with requests before a replica is ready and more than fit, a cancel, an expiry, a death
/// and a drain.
std::vector<std::string> record() {
  std::vector<std::string> lines;
  testing::WorldOptions options;
  options.router.pp_size = 2;
  options.router.max_seqs = 4;
  options.kv_blocks = 16;
  options.trace = [&lines](std::string line) { lines.push_back(std::move(line)); };
  World world(options);
  for (int i = 0; i < 6; ++i)
    world.spawn();
  world.run_for(milliseconds(20));  // loading: the first requests wait for a replica
  world.submit(request_of(100, 3, 2));
  world.run_for(seconds(1));
  Request late = request_of(41, 50, 100);
  late.params.deadline_ms = 20;
  world.submit(late);
  for (RequestId id = 1; id <= 40; ++id)
    world.submit(request_of(id, 10 + id, 30));
  Request refused = request_of(42, 5, 5);
  refused.params.temperature = -1;
  world.submit(refused);
  world.run_for(milliseconds(50));
  world.cancel(39);
  world.kill(world.worker_ids().front(), milliseconds(10));
  world.run_for(milliseconds(300));
  world.with_router([&](Router& router) { (void)router.drain(1, world.now()); });
  REQUIRE(world.run_until([&] { return world.all_ended(); }, seconds(100)));
  return lines;
}

/// The first failure of a replay of the lines, if any; `waited` counts what requests were seen to
/// wait for.
Status replay_all(const std::vector<std::string>& lines, std::map<WaitReason, int>* waited) {
  ASSIGN_OR_RETURN(const TraceHeader header, read_trace_header(lines.front()));
  Replay replay(header, {testing::make_fake_model()});
  for (std::size_t i = 1; i < lines.size(); ++i) {
    ASSIGN_OR_RETURN(const TraceLine line, replay.apply(lines[i]));
    if (waited == nullptr) continue;
    for (const RequestView& view : replay.router().requests()) {
      if (!view.placed) ++(*waited)[view.waits_for];
    }
  }
  return replay.finish();
}

std::size_t find_line(const std::vector<std::string>& lines, std::string_view text) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(text) != std::string::npos) return i;
  }
  FAIL("no line has " << text);
  return 0;
}

}  // namespace

TEST_CASE("a recorded run is decided the same when it is replayed") {
  init_log("test", LogLevel::kError);
  const std::vector<std::string> lines = record();
  for (const char* kind :
       {"\"submit\"", "\"cancel\"", "\"lost\"", "\"drain\"", "\"advance\"", "\"Hello\"",
        "\"LoadProgress\"", "\"Loaded\"", "\"Ready\"", "\"StepResult\"", "\"Assign\"", "\"Start\"",
        "\"Abort\"", "\"StepCommand\"", "\"code\":4"}) {
    (void)find_line(lines, kind);
  }
  std::map<WaitReason, int> waited;
  CHECK_EQ(replay_all(lines, &waited).message(), "");
  for (const WaitReason reason : {WaitReason::kNoReplica, WaitReason::kSlots, WaitReason::kKv,
                                  WaitReason::kOrder, WaitReason::kFairness}) {
    CAPTURE(to_string(reason));
    CHECK_GT(waited[reason], 0);
  }
}

TEST_CASE("a trace that was tampered with is found out where it parts") {
  init_log("test", LogLevel::kError);
  const std::vector<std::string> lines = record();

  std::vector<std::string> other = lines;
  const std::size_t step = find_line(lines, "\"StepCommand\"");
  other[step].replace(other[step].find("\"lane\":0"), 8, "\"lane\":1");
  const Status changed = replay_all(other, nullptr);
  CHECK_EQ(changed.code(), StatusCode::kInternal);
  CHECK_NE(changed.message().find("\"lane\":1"), std::string::npos);

  other = lines;
  other.erase(other.begin() + static_cast<std::ptrdiff_t>(find_line(lines, "\"cancel\"")));
  CHECK_EQ(replay_all(other, nullptr).code(), StatusCode::kInternal);

  other = lines;
  other.resize(step);
  CHECK_EQ(replay_all(other, nullptr).code(), StatusCode::kInternal);
}

TEST_CASE("a line that is no trace is refused with what is wrong") {
  struct Case {
    const char* line;
    const char* message;
  };
  for (const Case& c : {Case{"", "not JSON"}, Case{"[]", "not a JSON object"},
                        Case{"{\"t\":1}", "not the first line"},
                        Case{"{\"trace\":99}", "version 99"}, Case{"{\"trace\":1}", "config"}}) {
    CAPTURE(c.line);
    const auto header = read_trace_header(c.line);
    REQUIRE_FALSE(header.ok());
    CHECK_NE(header.status().message().find(c.message), std::string::npos);
  }
  Replay replay({}, {testing::make_fake_model()});
  for (const Case& c :
       {Case{"{}", "t: it is missing"}, Case{"{\"t\":\"x\"}", "t: it is not a number"},
        Case{"{\"t\":1}", "no event"}, Case{"{\"t\":1,\"from\":1}", "no known kind"},
        Case{"{\"t\":1,\"from\":1,\"Ready\":{}}", "Ready: epoch: it is missing"},
        Case{"{\"t\":1,\"submit\":{\"id\":1,\"tenant\":2}}", "submit: tenant: it is not a string"},
        Case{"{\"t\":1,\"cancel\":-1}", "cancel: it is not a number in range"}}) {
    CAPTURE(c.line);
    const auto applied = replay.apply(c.line);
    REQUIRE_FALSE(applied.ok());
    CHECK_NE(applied.status().message().find(c.message), std::string::npos);
  }
}

}  // namespace brigade::router
