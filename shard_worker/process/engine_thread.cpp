// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/engine_thread.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::worker {
namespace {

constexpr Duration kMinBeatInterval = std::chrono::milliseconds(100);
constexpr Duration kMaxBeatInterval = std::chrono::seconds(5);
constexpr Duration kProgressInterval = std::chrono::milliseconds(50);
/// Jobs find room even when the steps have used up theirs: a few are under way at once, in any
/// order of aborts.
constexpr std::size_t kMaxQueuedJobs = 64;

std::uint64_t to_us(Duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

}  // namespace

EngineThread::EngineThread(Options options)
    : options_(std::move(options)),
      queue_(kMaxQueuedSteps + kMaxQueuedJobs),
      abort_([this] { options_.link->wake(); }) {
  thread_ = std::thread([this] { loop(); });
}

EngineThread::~EngineThread() {
  abort_.abort_all();
  queue_.close();
  thread_.join();
}

bool EngineThread::push_step(wire::StepCommand command) {
  return queue_.size() < kMaxQueuedSteps && queue_.try_push(std::move(command));
}

void EngineThread::push_job(EngineJob job) {
  // The router sends a place, a start and an end in turn, and each end empties the queue: more is a
  // peer gone mad, and a job that is not done shows as a silent worker.
  if (!queue_.try_push(std::move(job))) log_error("the job queue is full: a job is lost");
}

void EngineThread::set_beat_interval(Duration interval) {
  beat_interval_ = std::clamp<Duration>(interval, kMinBeatInterval, kMaxBeatInterval);
}

void EngineThread::loop() {
  for (;;) {
    beat_if_due();
    std::optional<Item> item = queue_.pop_until(next_beat_);
    if (!item) {
      if (queue_.closed()) break;
      continue;
    }
    if (const auto* command = std::get_if<wire::StepCommand>(&*item)) {
      run_step(*command);
    } else {
      do_job(std::get<EngineJob>(*item));
    }
  }
  runner_.reset();
}

void EngineThread::do_job(EngineJob& job) {
  if (auto* load_job = std::get_if<LoadJob>(&job)) load(*load_job);
  if (const auto* start_job = std::get_if<StartJob>(&job)) start(*start_job);
  if (const auto* stop_job = std::get_if<StopJob>(&job)) stop(*stop_job);
}

void EngineThread::load(LoadJob& job) {
  runner_.reset();
  assign_ = std::move(job.assign);
  const std::uint64_t epoch = assign_->epoch;
  abort_.arm(epoch);
  if (abort_.token().stop_requested()) return;
  if (Status status = options_.link->admit(*assign_); !status.ok()) {
    end_epoch(std::move(status));
    return;
  }
  TimePoint next_report{};
  const Status status = options_.engine->load(*assign_, [&](float fraction) {
    beat_if_due();
    if (Clock::now() < next_report) return;
    next_report = Clock::now() + kProgressInterval;
    options_.on_event(LoadProgressed{.epoch = epoch, .fraction = fraction});
  });
  if (!status.ok()) {
    end_epoch(status.with_context("loading"));
    return;
  }
  const Engine& engine = *options_.engine;
  const std::uint64_t blocks = options_.kv_memory_bytes > 0
                                   ? options_.kv_memory_bytes / engine.kv_block_bytes()
                                   : engine.max_kv_blocks(options_.memory_bytes);
  options_.on_event(LoadDone{
      .epoch = epoch, .max_kv_blocks = blocks, .weight_bytes = options_.engine->weight_bytes()});
}

void EngineThread::start(const StartJob& job) {
  if (!assign_ || assign_->epoch != job.epoch) return;  // it has ended since
  auto runner = EpochRunner::start(
      {.assign = *assign_, .num_kv_blocks = job.num_kv_blocks, .spin = options_.spin},
      *options_.engine, *options_.link, abort_);
  if (!runner.ok()) {
    end_epoch(runner.status().with_context("start"));
    return;
  }
  runner_ = std::move(runner).value();
  last_step_ = 0;
  stage_times_ = {.epoch = job.epoch};
  options_.on_event(StartDone{.epoch = job.epoch});
}

void EngineThread::stop(const StopJob& job) {
  if (!assign_ || assign_->epoch != job.epoch) return;
  runner_.reset();
  assign_.reset();
  next_beat_ = Clock::now();  // tells the router now that this rank is idle
}

void EngineThread::end_epoch(Status status) {
  const std::uint64_t epoch = assign_->epoch;
  const bool aborted = abort_.token().stop_requested();
  runner_.reset();
  assign_.reset();
  if (aborted) return;
  log_warning(str_cat("epoch ", epoch, " ends: ", status.message()));
  options_.on_event(EpochFailed{.epoch = epoch, .status = std::move(status)});
}

void EngineThread::run_step(const wire::StepCommand& command) {
  if (!runner_ || command.epoch != assign_->epoch || abort_.token().stop_requested()) {
    log_debug(str_cat("step ", command.step, " of epoch ", command.epoch, " is dropped: over"));
    return;
  }
  auto result = runner_->run(command);
  if (!result.ok()) {
    end_epoch(result.status().with_context(str_cat("step ", command.step)));
    return;
  }
  last_step_ = command.step;
  count(runner_->times());
  if (result->has_value()) options_.to_router(std::move(**result));
}

void EngineThread::count(const StepTimes& times) {
  ++stage_times_.num_steps;
  stage_times_.compute_us += to_us(times.compute);
  stage_times_.wait_us += to_us(times.wait);
  stage_times_.link_us += to_us(times.link);
}

void EngineThread::beat_if_due() {
  const TimePoint now = Clock::now();
  if (now < next_beat_) return;
  next_beat_ = now + beat_interval_.load();
  options_.to_router(wire::Heartbeat{.epoch = assign_ ? assign_->epoch : 0,
                                     .last_step = last_step_,
                                     .queued_steps = static_cast<std::uint32_t>(queue_.size())});
  send_stage_times();
}

void EngineThread::send_stage_times() {
  if (!runner_ || runner_->reports_results() || stage_times_.num_steps == 0) return;
  options_.to_router(stage_times_);
  stage_times_ = {.epoch = stage_times_.epoch};
}

}  // namespace brigade::worker
