// SPDX-License-Identifier: Apache-2.0
#include "tests/router/core/support/world.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/strings.h"

namespace brigade::router::testing {

std::uint64_t Dice::below(std::uint64_t bound) {
  return random_bits(seed_, counter_++, stream_) % bound;
}

std::uint64_t Dice::between(std::uint64_t low, std::uint64_t high) {
  return low + below(high - low + 1);
}

bool Dice::chance(double probability) {
  return static_cast<double>(below(1'000'000)) < probability * 1e6;
}

Duration Dice::between(Duration low, Duration high) {
  const auto span = static_cast<std::uint64_t>((high - low).count());
  return low + Duration(static_cast<Duration::rep>(below(span + 1)));
}

World::World(WorldOptions options)
    : options_(std::move(options)),
      now_(options_.start),
      network_(options_.seed, /*stream=*/77),
      router_(options_.router, options_.models, options_.trace) {
  after(std::chrono::seconds(1), [this] { scrape(); });
}

void World::at(TimePoint time, std::function<void()> event) {
  events_.push({.time = time, .number = next_event_++, .run = std::move(event)});
}

void World::after(Duration delay, std::function<void()> event) {
  at(now_ + delay, std::move(event));
}

void World::deliver(Link link, Duration delay, std::function<void()> event) {
  TimePoint& last = links_[link];
  last = std::max(last, now_ + delay);
  at(last, std::move(event));
}

bool World::run_next(TimePoint limit) {
  const TimePoint event_time = events_.empty() ? kNever : events_.top().time;
  const TimePoint wake = router_.next_wake();
  const TimePoint time = std::min(event_time, wake);
  if (time > limit) {
    now_ = limit;
    return false;
  }
  ++num_events_;
  now_ = std::max(now_, time);
  if (wake <= event_time) {
    with_router([this](Router& router) { router.advance(now_); });
    INVARIANT(router_.next_wake() > now_) << "the router does not rest";
  } else {
    const Event event = events_.top();
    events_.pop();
    event.run();
  }
  check_after_event();
  return true;
}

void World::check_after_event() {
  constexpr Duration kGrace = std::chrono::seconds(5);
  if (!deadlines_.empty()) {
    INVARIANT(now_ <= deadlines_.begin()->first + kGrace)
        << "request " << deadlines_.begin()->second << " outlives its deadline";
  }
  if (!starts_.empty()) {
    INVARIANT(now_ <= starts_.begin()->first)
        << "request " << starts_.begin()->second << " starves";
  }
  INVARIANT_EQ(num_sent_, num_delivered_ + num_lost_ + num_on_way_);
}

/// What an operator's monitoring sees once a second.
void World::scrape() {
  const RouterStatus status = router_.status();
  INVARIANT_EQ(status.accepted,
               status.completed + status.failed + status.cancelled + status.in_flight);
  INVARIANT_EQ(status.accepted + status.refused, clients_.size());
  INVARIANT_EQ(status.in_flight, num_open_);
  std::set<ReplicaId> draining;
  for (const ReplicaStatus& replica : status.replicas) {
    if (replica.state == "draining") draining.insert(replica.id);
  }
  for (const ReplicaId id : draining) {
    const auto drain = drains_.find(id);
    INVARIANT(drain == drains_.end() || now_ <= drain->second.since + std::chrono::seconds(60))
        << "replica " << id << " has drained for longer than 60 s";
  }
  std::erase_if(drains_, [&](const auto& drain) { return !draining.contains(drain.first); });
  after(std::chrono::seconds(1), [this] { scrape(); });
}

void World::drain(ReplicaId replica) {
  Drain drain{.since = now_};
  for (const RequestView& view : router_.requests()) {
    if (view.placed && view.replica == replica) drain.placed.insert(view.id);
  }
  const bool is_sound = now_ >= calm_since_ && !corrupt_next_result_;
  if (is_sound && !drain.placed.empty()) note("drain of a sound replica with requests");
  const bool is_new = is_sound && drains_.try_emplace(replica, std::move(drain)).second;
  with_router([&](Router& router) {
    if (!router.drain(replica, now_).ok() && is_new) drains_.erase(replica);
  });
}

void World::disturb() {
  calm_since_ = now_ + std::chrono::seconds(15);
  must_progress_ = false;
  starts_.clear();
  start_times_.clear();
  drains_.clear();
}

void World::expect_progress() {
  must_progress_ = true;
  for (const auto& [id, client] : clients_) {
    if (!client.ended && client.tokens.empty()) start_by(id);
  }
}

void World::start_by(RequestId request) {
  const TimePoint latest =
      now_ + std::chrono::seconds(30) + std::chrono::seconds(4) * static_cast<int>(num_open_);
  if (start_times_.emplace(request, latest).second) starts_.emplace(latest, request);
}

void World::forget_start(RequestId request) {
  const auto it = start_times_.find(request);
  if (it == start_times_.end()) return;
  starts_.erase({it->second, request});
  start_times_.erase(it);
}

void World::replay_stale_result() {
  std::set<std::uint64_t> live;
  for (const ReplicaStatus& replica : router_.status().replicas) {
    if (replica.state != "lost" && replica.state != "drained") live.insert(replica.epoch);
  }
  for (const auto& [worker, result] : last_results_) {
    if (find(worker) == nullptr || live.contains(result.epoch)) continue;
    note("result of an epoch that is over");
    router_.on_message(worker, result, now_);
    const Actions actions = router_.take_actions();
    // Who was given up is told so.
    const bool only_told = std::ranges::all_of(actions.sends, [](const SendToWorker& send) {
      return std::holds_alternative<wire::Release>(send.message);
    });
    INVARIANT(actions.outputs.empty() && only_told)
        << "a result of epoch " << result.epoch << " has an effect after its end";
    return;
  }
}

void World::run_for(Duration duration) {
  const TimePoint limit = now_ + duration;
  while (run_next(limit)) {
  }
}

bool World::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now_ + limit;
  while (!done()) {
    if (!run_next(end)) return false;
  }
  return true;
}

WorkerId World::spawn(const std::string& host) {
  const WorkerId id = next_worker_++;
  wire::Hello hello{.build_id = "b",
                    .schema_hash = "s",
                    .name = str_cat("w", id),
                    .incarnation = 1000 + id,
                    .host_id = host,
                    .pid = static_cast<std::uint32_t>(id),
                    .device = "sim",
                    .memory_bytes = std::uint64_t{1} << 30,
                    .endpoints = {str_cat("ipc://w", id)}};
  workers_[id] = std::make_unique<SimWorker>(*this, id, hello);
  send_to_router(id, hello);
  heartbeats(id);
  return id;
}

void World::heartbeats(WorkerId worker) {
  after(options_.heartbeat_period, [this, worker] {
    SimWorker* sim = find(worker);
    if (sim == nullptr) return;
    sim->heartbeat();
    heartbeats(worker);
  });
}

SimWorker* World::find(WorkerId worker) {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? nullptr : it->second.get();
}

std::vector<WorkerId> World::worker_ids() const {
  std::vector<WorkerId> ids;
  for (const auto& [id, worker] : workers_)
    ids.push_back(id);
  return ids;
}

SimWorker* World::find_rank(std::uint64_t epoch, std::uint32_t stage) {
  for (const auto& [id, worker] : workers_) {
    if (worker->is_rank(epoch, stage, 0)) return worker.get();
  }
  return nullptr;
}

void World::kill(WorkerId worker, Duration until_noticed) {
  leave(worker);
  after(until_noticed, [this, worker] {
    with_router([&](Router& router) { router.on_worker_lost(worker, "its process ended", now_); });
  });
}

void World::leave(WorkerId worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  it->second->hang();
  dead_.push_back(std::move(it->second));
  workers_.erase(it);
}

bool World::next_load_fails() {
  if (loads_to_fail_ == 0) return false;
  --loads_to_fail_;
  return true;
}

void World::submit(Request request) {
  const Request as = request;
  submit_expecting(std::move(request), as);
}

void World::submit_expecting(Request request, const Request& as) {
  Client& client = clients_[request.id];
  client.request = as;
  const std::uint64_t seed = as.params.seed.value_or(random_bits(options_.router.seed, as.id));
  if (as.params.max_tokens.value_or(1) > 0) {
    client.expected = expect(as, seed, *options_.models.front());
  }
  ++num_open_;
  const RequestId id = request.id;
  client.deadline =
      now_ + (as.params.deadline_ms > 0 ? Duration(std::chrono::milliseconds(as.params.deadline_ms))
                                        : options_.router.default_deadline);
  deadlines_.emplace(client.deadline, id);
  if (must_progress_) start_by(id);
  with_router([&](Router& router) { router.submit(std::move(request), now_); });
}

void World::cancel(RequestId request) {
  with_router([&](Router& router) { router.cancel(request, now_); });
  const auto client = clients_.find(request);
  INVARIANT(client == clients_.end() || client->second.ended) << "request " << request;
}

void World::with_router(const std::function<void(Router&)>& call) {
  call(router_);
  apply_actions();
  if (options_.audit) router_.audit();
}

void World::mix(std::uint64_t value) {
  trace_hash_ = mix64(trace_hash_ ^ value);
}

void World::apply_actions() {
  Actions actions = router_.take_actions();
  for (SendToWorker& send : actions.sends)
    deliver_to_worker(std::move(send));
  for (const Output& output : actions.outputs)
    on_output(output);
}

void World::deliver_to_worker(SendToWorker send) {
  mix(send.worker * 16 + send.message.index());
  if (const auto* start = std::get_if<wire::Start>(&send.message)) {
    checkers_.try_emplace(start->epoch, start->num_kv_blocks, options_.router.step_tokens);
  }
  if (const auto* command = std::get_if<wire::StepCommand>(&send.message)) {
    const std::uint64_t hash = wire::plan_hash(*command);
    const bool is_new = plan_hashes_.emplace(std::pair(command->epoch, command->step), hash).second;
    mix(hash);
    if (is_new) {
      checkers_.at(command->epoch).on_command(*command);
      note_step(*command);
    }
  }
  const Duration delay = network_.between(options_.min_router_delay, options_.max_router_delay);
  const WorkerId worker = send.worker;
  ++num_sent_;
  ++num_on_way_;
  deliver({0, worker}, delay, [this, worker, message = std::move(send.message)] {
    SimWorker* sim = find(worker);
    --num_on_way_;
    ++(sim == nullptr ? num_lost_ : num_delivered_);
    if (sim != nullptr) sim->receive(message);
  });
}

void World::compare_plans(const wire::StepCommand& command) {
  INVARIANT_EQ(plan_hashes_.at({command.epoch, command.step}), wire::plan_hash(command));
}

void World::send_to_router(WorkerId worker, wire::FromWorker message) {
  if (auto* result = std::get_if<wire::StepResult>(&message)) {
    if (std::exchange(corrupt_next_result_, false)) ++result->plan_hash;
  }
  const Duration delay = network_.between(options_.min_router_delay, options_.max_router_delay);
  ++num_sent_;
  ++num_on_way_;
  deliver({worker, 0}, delay, [this, worker, message = std::move(message)] {
    --num_on_way_;
    ++num_delivered_;
    if (const auto* result = std::get_if<wire::StepResult>(&message)) {
      checkers_.at(result->epoch).on_result(*result);
      last_results_[worker] = *result;
    }
    with_router([&](Router& router) { router.on_message(worker, message, now_); });
  });
}

void World::send_activations(std::uint64_t epoch, std::uint32_t stage, std::uint64_t step,
                             std::vector<std::int32_t> tokens,
                             std::vector<std::uint64_t> histories) {
  const Duration delay = network_.between(options_.min_link_delay, options_.max_link_delay);
  deliver({(epoch << 16) + 1000000, stage}, delay,
          [this, epoch, stage, step, tokens = std::move(tokens), histories = std::move(histories)] {
            if (SimWorker* peer = find_rank(epoch, stage)) {
              peer->on_activations(epoch, step, tokens, histories);
            }
          });
}

void World::send_sample(std::uint64_t epoch, std::uint64_t step, std::uint32_t slot,
                        std::int32_t token) {
  const Duration delay = options_.router.pp_size == 1
                             ? Duration(0)
                             : network_.between(options_.min_link_delay, options_.max_link_delay);
  deliver({(epoch << 16) + 2000000, 0}, delay, [this, epoch, step, slot, token] {
    if (SimWorker* first = find_rank(epoch, 0)) first->on_sample(epoch, step, slot, token);
  });
}

Duration World::step_time(std::size_t num_tokens) const {
  return options_.step_base + options_.step_per_token * static_cast<Duration::rep>(num_tokens);
}

std::size_t World::max_steps_in_flight() const {
  std::size_t most = 0;
  for (const auto& [epoch, checker] : checkers_)
    most = std::max(most, checker.max_in_flight());
  return most;
}

std::vector<std::uint64_t> World::tokens_by_epoch() const {
  std::vector<std::uint64_t> tokens;
  for (const auto& [epoch, checker] : checkers_)
    tokens.push_back(checker.num_tokens());
  return tokens;
}

void World::on_output(const Output& output) {
  Client& client = clients_.at(output.request);
  INVARIANT(!client.ended) << "request " << output.request << " has an output after its end";
  mix(output.request);
  for (const wire::OutputToken& token : output.tokens) {
    // The fake model's tokens depend on their position: a gap or a repeat shows as a wrong token.
    const std::size_t index = client.tokens.size();
    INVARIANT_LT(index, client.expected.tokens.size()) << "request " << output.request;
    INVARIANT_EQ(token.token, client.expected.tokens[index]) << "request " << output.request;
    INVARIANT_EQ(token.logprob.has_value(), client.request.params.num_logprobs >= 0);
    client.tokens.push_back(token.token);
    client.token_times.push_back(now_);
    mix(static_cast<std::uint64_t>(token.token));
  }
  if (!output.prompt_tokens.empty()) {
    INVARIANT(client.tokens.size() <= 1 && client.num_scored == 0) << output.request;
    client.num_scored = output.prompt_tokens.size();
    INVARIANT_EQ(client.num_scored, client.request.prompt.size());
    for (std::size_t i = 0; i < client.num_scored; ++i) {
      INVARIANT_EQ(output.prompt_tokens[i].token, client.request.prompt[i]);
      INVARIANT_EQ(output.prompt_tokens[i].logprob.has_value(), i > 0);
    }
  }
  client.text += output.text;
  forget_start(output.request);
  if (output.finish == wire::FinishReason::kNone) return;
  client.ended = true;
  --num_open_;
  deadlines_.erase({client.deadline, output.request});
  client.last = output;
  check_end(client);
  note_end(client);
}

void World::note_end(const Client& client) {
  const bool begun = !client.tokens.empty();
  switch (client.last.finish) {
    case wire::FinishReason::kStop:
      note(client.last.stop_reason.empty() ? "ended by the end token" : "ended by a stop");
      break;
    case wire::FinishReason::kLength:
      note("ended by its length");
      break;
    case wire::FinishReason::kCancelled:
      note(begun ? "cancelled between its tokens" : "cancelled before its first token");
      break;
    default:
      note(to_string(client.last.status.code()));
      if (client.last.status.code() == StatusCode::kDeadlineExceeded) {
        note(begun ? "expired between its tokens" : "expired before its first token");
      }
      break;
  }
  if (client.last.usage.cached_tokens > 0) note("cached tokens in the usage");
  if (client.num_scored > 0) note("prompt scored");
}

void World::note_step(const wire::StepCommand& command) {
  bool decodes = false;
  bool prefills = false;
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    const bool samples = (command.flags[i] & wire::kSampleToken) != 0;
    const bool one = command.cu_tokens[i + 1] - command.cu_tokens[i] == 1;
    decodes |= samples && one;
    prefills |= !one;
    if (!samples) note("prompt in chunks");
    if ((command.flags[i] & wire::kTokenFromSample) != 0) note("token taken from a sample");
  }
  if (decodes && prefills) note("decodes and prefills in one step");
}

void World::check_end(const Client& client) {
  const auto of_drain = std::find_if(drains_.begin(), drains_.end(), [&](const auto& drain) {
    return drain.second.placed.contains(client.request.id);
  });
  INVARIANT(of_drain == drains_.end() || client.last.finish != wire::FinishReason::kError ||
            client.last.status.code() == StatusCode::kDeadlineExceeded)
      << "request " << client.request.id << " is lost in a drain: " << client.last.status.message();
  INVARIANT_LE(client.last.usage.completion_tokens,
               client.request.params.max_tokens.value_or(~std::uint32_t{0}));
  INVARIANT_LE(client.last.usage.cached_tokens, client.last.usage.prompt_tokens);
  const Output& last = client.last;
  INVARIANT_EQ(last.usage.completion_tokens, client.tokens.size()) << client.request.id;
  INVARIANT_EQ(last.usage.prompt_tokens, client.request.prompt.size()) << client.request.id;
  const bool whole =
      last.finish == wire::FinishReason::kStop || last.finish == wire::FinishReason::kLength;
  INVARIANT_EQ(last.status.ok(), whole) << client.request.id;
  if (!whole || client.request.params.max_tokens.value_or(1) == 0) return;
  INVARIANT_EQ(client.tokens.size(), client.expected.tokens.size()) << client.request.id;
  INVARIANT(client.text == client.expected.text)
      << "request " << client.request.id << ": " << quoted(client.text) << " is not "
      << quoted(client.expected.text);
  INVARIANT(last.finish == client.expected.finish) << client.request.id;
  INVARIANT_EQ(last.stop_reason, client.expected.stop_reason) << client.request.id;
  INVARIANT_EQ(client.num_scored > 0, client.request.params.num_prompt_logprobs >= 0);
}

}  // namespace brigade::router::testing
