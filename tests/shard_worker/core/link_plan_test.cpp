// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/link_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "common/base/strings.h"

namespace brigade::worker {
namespace {

wire::Assign grid(const std::vector<std::uint32_t>& tp_sizes) {
  wire::Assign assign{.epoch = 9, .max_step_tokens = 64};
  for (std::size_t s = 0; s < tp_sizes.size(); ++s) {
    wire::StageInfo stage{.layers = {0, 1}, .tp_size = tp_sizes[s]};
    for (std::uint32_t r = 0; r < tp_sizes[s]; ++r) {
      stage.endpoints.push_back(
          {str_cat("ipc:///run/", s, '-', r), str_cat("tcp://10.0.0.1:", s, r)});
      stage.host_ids.push_back("host");
      stage.link_keys.push_back(str_cat("key ", s, '-', r));
    }
    assign.stages.push_back(stage);
  }
  return assign;
}

TEST_CASE(
    "in every grid each rank past stage 0 has one sender, which sends to it, and nobody else "
    "does") {
  for (std::uint32_t a = 1; a <= 4; ++a) {
    for (std::uint32_t b = 1; b <= 4; ++b) {
      wire::Assign assign = grid({a, b});
      std::multiset<std::pair<std::uint32_t, std::uint32_t>> sent;
      std::multiset<std::pair<std::uint32_t, std::uint32_t>> awaited;
      for (std::uint32_t stage = 0; stage < 2; ++stage) {
        for (std::uint32_t r = 0; r < (stage == 0 ? a : b); ++r) {
          assign.pp_stage = stage;
          assign.tp_rank = r;
          const auto plan = make_link_plan(assign, 4);
          REQUIRE(plan.ok());
          for (const LinkPeer& peer : plan->hidden_to) {
            CHECK(peer.stage == 1);
            sent.insert({r, peer.tp_rank});
          }
          if (plan->hidden_from) awaited.insert({*plan->hidden_from, r});
          CHECK(plan->samples_to.size() == (stage == 1 && r == 0 ? a : 0));
          CHECK(plan->gets_samples() == (stage == 0));
        }
      }
      CHECK(sent == awaited);
      CHECK(awaited.size() == b);
    }
  }
}

TEST_CASE("a pipeline of one stage sends nothing") {
  const auto plan = make_link_plan(grid({3}), 4);
  REQUIRE(plan.ok());
  CHECK(plan->hidden_to.empty());
  CHECK(plan->samples_to.empty());
  CHECK_FALSE(plan->hidden_from.has_value());
  CHECK_FALSE(plan->gets_samples());
}

TEST_CASE(
    "a peer on this host is reached over ipc, another over tcp, and one without an address is an "
    "error") {
  wire::Assign assign = grid({1, 1});
  CHECK(make_link_plan(assign, 4)->hidden_to[0].endpoint == "ipc:///run/1-0");
  assign.stages[1].host_ids[0] = "elsewhere";
  CHECK(make_link_plan(assign, 4)->hidden_to[0].endpoint == "tcp://10.0.0.1:10");
  assign.stages[1].endpoints[0].pop_back();
  CHECK(make_link_plan(assign, 4).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a grid whose lists do not fit its sizes is refused") {
  wire::Assign assign = grid({2, 2});
  assign.stages[1].endpoints.pop_back();
  CHECK_FALSE(make_link_plan(assign, 4).ok());
  assign = grid({2, 2});
  assign.tp_rank = 2;
  CHECK_FALSE(make_link_plan(assign, 4).ok());
  assign = grid({2, 2});
  assign.stages[0].tp_size = 0;
  CHECK_FALSE(make_link_plan(assign, 4).ok());
}

}  // namespace
}  // namespace brigade::worker
