// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "common/base/random.h"
#include "common/base/strings.h"
#include "router/core/admission.h"
#include "router/core/limits.h"
#include "router/core/planted_bug.h"
#include "router/core/router_impl.h"

namespace brigade::router {
namespace {

constexpr std::uint32_t kRetryUnavailableS = 5;
constexpr std::uint32_t kRetryClosedS = 10;

std::string names(const Cluster::Models& models) {
  std::string text;
  for (const auto& model : models)
    text += (text.empty() ? "" : ", ") + quoted(model->name);
  return text;
}

}  // namespace

void Router::Impl::submit(Request request, TimePoint now) {
  const auto model = std::find_if(models.begin(), models.end(), [&request](const auto& candidate) {
    return candidate->name == request.model;
  });
  if (model == models.end()) {
    ledger.refuse(request, std::nullopt,
                  not_found(str_cat("model: there is no ", quoted(request.model),
                                    "; this router serves ", names(models))),
                  0);
    return;
  }
  const auto model_index = static_cast<std::size_t>(model - models.begin());
  Result<wire::GenerationParams> params =
      check_request(request, **model, max_kv_tokens(model_index));
  if (!params.ok()) {
    ledger.refuse(request, model_index, params.status(), 0);
    return;
  }
  std::uint32_t retry_after_s = 0;
  Status admitted = check_serving(request, model_index, retry_after_s);
  if (!admitted.ok()) {
    ledger.refuse(request, model_index, std::move(admitted), retry_after_s);
    return;
  }
  std::unique_ptr<LiveRequest> live =
      make_request(std::move(request), model_index, std::move(*params), now);
  admitted = check_room(*live, now, retry_after_s);
  if (!admitted.ok()) {
    ledger.refuse({.id = live->id, .prompt = std::move(live->tokens)}, model_index,
                  std::move(admitted), retry_after_s);
    return;
  }
  LiveRequest& accepted = ledger.accept(std::move(live));
  if (accepted.last_position() == 0) {  // one prompt token to score: nothing comes before it
    accepted.prompt_scores.push_back({.token = accepted.tokens[0]});
    ledger.on_prompt_scored(accepted);
    ledger.end_scored(accepted);
    return;
  }
  queues[model_index].push(queue_item(accepted, now));
}

Status Router::Impl::check_serving(const Request& request, std::size_t model_index,
                                   std::uint32_t& retry_after_s) const {
  if (closed) {
    retry_after_s = kRetryClosedS;
    return unavailable("the router is shutting down");
  }
  if (!cluster.can_serve(model_index)) {
    retry_after_s = kRetryUnavailableS;
    return unavailable(str_cat("no replica of ", quoted(request.model),
                               " is there or forming: ", cluster.why_not(model_index)));
  }
  return {};
}

Status Router::Impl::check_room(const LiveRequest& request, TimePoint now,
                                std::uint32_t& retry_after_s) {
  const QueueItem item = queue_item(request, now);
  const std::uint64_t ahead = queues[request.model_index].tokens_ahead(item);
  const DrainRate& rate = drain_rates[request.model_index];
  const Slots slots = slots_of(request.model_index);
  const std::optional<double> service_s = expected_service_s(request);
  QueueLoad load{.requests = queued_requests(),
                 .tokens = queued_tokens(),
                 .wait_s = rate.seconds_for(ahead, now)};
  if (!load.wait_s && service_s) {
    load.wait_s = expected_wait_s(ahead, item.cost, *service_s, slots);
  }
  for (const FairQueue& queue : queues) {
    load.tenant_requests += queue.tenant_size(request.tenant);
    load.tenant_tokens += queue.tenant_tokens(request.tenant);
  }
  if (load.wait_s && *load.wait_s > std::chrono::duration<double>(config.max_queue_delay).count()) {
    queues[request.model_index].set_overload(request.tenant, now);
  }
  if (queues[request.model_index].is_overload(request.tenant, now)) {
    load.standing = standing_bound(rate, slots, service_s, now);
  }
  Status admitted = check_queue_bounds(config, load, item.cost, request.deadline - now);
  if (!admitted.ok()) retry_after_s = brigade::router::retry_after_s(load.wait_s);
  return admitted;
}

std::unique_ptr<LiveRequest> Router::Impl::make_request(Request&& request, std::size_t model_index,
                                                        wire::GenerationParams params,
                                                        TimePoint now) const {
  auto live = std::make_unique<LiveRequest>();
  live->id = request.id;
  live->tenant = std::move(request.tenant);
  live->model_index = model_index;
  live->model = models[model_index];
  live->seed = params.seed.value_or(random_bits(config.seed, request.id));
  live->deadline =
      now + (params.deadline_ms > 0 ? Duration(std::chrono::milliseconds(params.deadline_ms))
                                    : config.default_deadline);
  live->is_open_ended = !request.params.max_tokens;
  live->num_prompt = static_cast<std::uint32_t>(request.prompt.size());
  live->tokens = std::move(request.prompt);
  live->group = request.group;
  if (config.prefix_cache) {
    live->chain =
        PrefixChain({.model_digest = live->model->digest,
                     .salt = planted(PlantedBug::kShareAcrossTenants) ? "" : live->tenant});
  } else if (live->group != 0) {
    live->chain = PrefixChain(live->group);
  }
  live->chain.extend(live->tokens);
  live->bad_words = std::move(request.bad_words);
  live->prompt_scored = params.num_prompt_logprobs < 0;
  live->stream =
      std::make_unique<OutputStream>(live->model->tokenizer, params, live->tokens.back());
  live->params = std::move(params);
  return live;
}

std::int64_t Router::Impl::max_kv_tokens(std::size_t model_index) const {
  std::uint64_t most = 0;
  for (const auto& [id, target] : targets) {
    if (!target.accepts || target.replica->options().model_index != model_index) continue;
    most = std::max(most, target.replica->options().num_blocks);
  }
  return static_cast<std::int64_t>(most * wire::kBlockSize);
}

/// Of the replicas that take its requests.
Slots Router::Impl::slots_of(std::size_t model_index) const {
  Slots slots;
  for (const auto& [id, target] : targets) {
    if (!target.accepts || target.replica->options().model_index != model_index) continue;
    slots.all += target.replica->options().max_seqs;
    slots.may_wait += may_always_wait(target.replica->options().max_seqs);
    slots.in_use += target.replica->num_requests();
  }
  return slots;
}

std::optional<double> Router::Impl::expected_service_s(const LiveRequest& request) const {
  const ModelStats& stats = ledger.stats()[request.model_index];
  const std::optional<double> token_s = stats.inter_token_s.mean();
  if (!token_s) return std::nullopt;
  const auto most = static_cast<double>(request.expected_output());
  return *token_s * std::min(most, stats.generation_tokens.mean().value_or(most));
}

std::uint64_t Router::Impl::queued_requests() const {
  std::uint64_t count = 0;
  for (const FairQueue& queue : queues)
    count += queue.size();
  return count;
}

std::uint64_t Router::Impl::queued_tokens() const {
  std::uint64_t count = 0;
  for (const FairQueue& queue : queues)
    count += queue.tokens();
  return count;
}

QueueItem Router::Impl::queue_item(const LiveRequest& request, TimePoint now) const {
  const std::uint64_t uncached = num_uncached(targets, request);
  return {.id = request.id,
          .order = request.order,
          .tenant = request.tenant,
          .priority = request.params.priority,
          .num_uncached = uncached,
          .cost = uncached + request.expected_output(),
          .since = now};
}

/// It had been taken from the queue, and goes on elsewhere or later.
void Router::Impl::requeue(LiveRequest& request, TimePoint now) {
  request.chain.extend(request.tokens);
  queues[request.model_index].push_front(queue_item(request, now));
}

void Router::Impl::end(LiveRequest& request, wire::FinishReason finish, Status status,
                       std::uint32_t retry_after_s) {
  if (request.phase == RequestPhase::kPlaced) {
    replicas.at(request.replica)->remove(request.slot, request.id);
    dirty.insert(request.replica);
  } else {
    queues[request.model_index].remove(request.id, ledger.now());
    release_reservation(targets, request.id);
  }
  ledger.end(request, finish, std::move(status), retry_after_s);
}

}  // namespace brigade::router
