// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/link_plan.h"

#include "common/base/strings.h"

namespace brigade::worker {
namespace {

Result<LinkPeer> find_peer(const wire::Assign& assign, std::uint32_t stage, std::uint32_t tp_rank) {
  const wire::StageInfo& there = assign.stages[stage];
  const std::string& own_host = assign.stages[assign.pp_stage].host_ids[assign.tp_rank];
  const bool same_host = there.host_ids[tp_rank] == own_host;
  for (const std::string& endpoint : there.endpoints[tp_rank]) {
    if (same_host || !endpoint.starts_with("ipc://")) {
      return LinkPeer{.stage = stage,
                      .tp_rank = tp_rank,
                      .endpoint = endpoint,
                      .key = there.link_keys[tp_rank]};
    }
  }
  return invalid_argument(
      str_cat("stage ", stage, " rank ", tp_rank, " has no endpoint that this host can reach"));
}

Status check_shape(const wire::Assign& assign) {
  if (assign.pp_stage >= assign.stages.size() ||
      assign.tp_rank >= assign.stages[assign.pp_stage].tp_size) {
    return invalid_argument(str_cat("assign: stage ", assign.pp_stage, " rank ", assign.tp_rank,
                                    " is not in the grid"));
  }
  for (const wire::StageInfo& stage : assign.stages) {
    if (stage.tp_size == 0 || stage.endpoints.size() != stage.tp_size ||
        stage.host_ids.size() != stage.tp_size || stage.link_keys.size() != stage.tp_size) {
      return invalid_argument(str_cat("assign: a stage of ", stage.tp_size, " ranks has ",
                                      stage.endpoints.size(), " endpoint lists, ",
                                      stage.host_ids.size(), " hosts and ", stage.link_keys.size(),
                                      " link keys"));
    }
  }
  return {};
}

}  // namespace

Result<LinkPlan> make_link_plan(const wire::Assign& assign, std::int64_t hidden_size) {
  RETURN_IF_ERROR(check_shape(assign));
  LinkPlan plan{.epoch = assign.epoch,
                .stage = assign.pp_stage,
                .tp_rank = assign.tp_rank,
                .num_stages = static_cast<std::uint32_t>(assign.stages.size()),
                .hidden_size = static_cast<std::uint32_t>(hidden_size),
                .max_step_tokens = assign.max_step_tokens};
  const std::uint32_t own_size = assign.stages[plan.stage].tp_size;
  if (!plan.first_stage()) plan.hidden_from = plan.tp_rank % assign.stages[plan.stage - 1].tp_size;
  if (!plan.last_stage()) {
    const std::uint32_t next = plan.stage + 1;
    for (std::uint32_t q = plan.tp_rank; q < assign.stages[next].tp_size; q += own_size) {
      ASSIGN_OR_RETURN(LinkPeer peer, find_peer(assign, next, q));
      plan.hidden_to.push_back(std::move(peer));
    }
  } else if (plan.num_stages > 1 && plan.tp_rank == 0) {
    for (std::uint32_t q = 0; q < assign.stages[0].tp_size; ++q) {
      ASSIGN_OR_RETURN(LinkPeer peer, find_peer(assign, /*stage=*/0, q));
      plan.samples_to.push_back(std::move(peer));
    }
  }
  return plan;
}

}  // namespace brigade::worker
