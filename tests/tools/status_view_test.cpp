// SPDX-License-Identifier: Apache-2.0
#include "tools/status_view.h"

#include <doctest/doctest.h>

namespace brigade::tools {
namespace {

constexpr const char* kStatus = R"({
  "replicas": [
    {"id": 0, "model": "smol", "state": "ready", "running": 2,
     "kv_blocks": {"total": 100, "used": 7, "cached": 3},
     "ranks": [{"worker": "w0", "pid": 41, "state": "ready", "tp_rank": 0, "pp_stage": 1,
                "layers": [15, 30], "load_fraction": 1, "busy_fraction": 0.5,
                "bubble_fraction": 0.125}]},
    {"id": 1, "model": "smol", "state": "loading",
     "ranks": [{"load_fraction": 0.25}, {"load_fraction": 0.75}]}],
  "idle_workers": 1, "queue": {"requests": 4, "tokens": 90, "buckets": []}, "new_member": {}})";

}  // namespace

TEST_CASE("a status is read, members that are missing or unknown included") {
  auto status = parse_status(kStatus);
  REQUIRE_MESSAGE(status.ok(), status.status().message());
  REQUIRE(status->replicas.size() == 2);
  const ReplicaView& replica = status->replicas[0];
  CHECK(replica.kv_total == 100);
  CHECK(replica.kv_used == 7);
  CHECK(replica.kv_cached == 3);
  CHECK(replica.ranks[0].layers == Range{15, 30});
  CHECK(replica.ranks[0].busy_fraction == 0.5);
  CHECK(replica.ranks[0].bubble_fraction == 0.125);
  CHECK(replica.load_fraction() == 1.0);
  CHECK(status->replicas[1].load_fraction() == 0.5);
  CHECK(status->num_ready() == 1);
  CHECK(status->queued_requests == 4);
  CHECK(status->queued_tokens == 90);
}

TEST_CASE("what is no status is an error or empty, never a crash") {
  CHECK(parse_status("{").status().code() == StatusCode::kDataLoss);
  for (const char* text : {"null", "[]", "3", "{\"replicas\": 3}", "{\"replicas\": [3, null, {}]}",
                           "{\"replicas\": [{\"id\": \"x\", \"kv_blocks\": [], \"ranks\": {}}]}",
                           "{\"replicas\": [{\"ranks\": [{\"layers\": [\"a\", {}]}]}]}"}) {
    CAPTURE(text);
    CHECK(parse_status(text).ok());
  }
}

TEST_CASE("the status for people names replicas, ranks, blocks and the queue") {
  const std::string text = render_status(parse_status(kStatus).value());
  for (const char* part : {"replica 0", "smol", "ready", "7 used, 3 cached of 100", "stage 1",
                           "rank 0", "layers 15-29", "pid 41", "busy  50 %", "bubble  13 %",
                           "4 requests, 90 tokens", "standing by  1 workers"}) {
    CAPTURE(part);
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  }
}

TEST_CASE("the progress bar fills with the load of all replicas and keeps to the width") {
  const StatusView status = parse_status(kStatus).value();
  CHECK(render_progress(status, 2, 60).find(" 75 %  1 of 2 replicas ready") != std::string::npos);
  CHECK(render_progress(StatusView{}, 1, 60).find("  0 %  0 of 1 replica ready") !=
        std::string::npos);
  for (std::size_t width : {0U, 5U, 20U, 40U, 60U, 200U}) {
    CAPTURE(width);
    CHECK(render_progress(status, 2, width).size() <= width);
  }
}

}  // namespace brigade::tools
