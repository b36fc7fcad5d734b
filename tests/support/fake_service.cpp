// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_service.h"

#include <algorithm>

#include "common/base/strings.h"
#include "tests/support/fake_tokenizer.h"

namespace brigade::testing {
namespace {

constexpr Duration kPatience = std::chrono::seconds(2);

constexpr std::string_view kChatMl =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

std::shared_ptr<const router::ServedModel> make_model(std::size_t index, std::int64_t max_context) {
  auto model = std::make_shared<router::ServedModel>();
  model->name = index == 0 ? "fake" : str_cat("fake-", index + 1);
  model->digest = "0123456789abcdef";
  model->tokenizer = std::make_shared<FakeTokenizer>();
  model->chat_template = model::ChatTemplate::parse(kChatMl).value();
  model->max_context = max_context;
  return model;
}

wire::OutputToken scored(std::int32_t token, std::int32_t num_top, bool has_logprob) {
  wire::OutputToken out{.token = token};
  if (!has_logprob) return out;
  out.logprob = -0.5F;
  for (std::int32_t i = 0; i < num_top; ++i) {
    out.top.push_back({i == 0 ? token : 'a' + i, -0.5F - static_cast<float>(i)});
  }
  return out;
}

}  // namespace

TaskThread::TaskThread() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (true) {
      ready_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (stopped_) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  });
}

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  ready_.notify_all();
  thread_.join();
}

void TaskThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  ready_.notify_one();
}

FakeService::FakeService(std::size_t num_models, std::int64_t max_context) {
  for (std::size_t i = 0; i < num_models; ++i)
    models_.push_back(make_model(i, max_context));
  script_ = [](const router::Request& request) { return say(request, {"Hel", "lo", "!"}); };
}

void FakeService::set_script(Script script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

void FakeService::set_gap(Duration gap) {
  const std::lock_guard lock(mutex_);
  gap_ = gap;
}

void FakeService::hold(bool held) {
  {
    const std::lock_guard lock(mutex_);
    held_ = held;
  }
  changed_.notify_all();
}

std::vector<router::Request> FakeService::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

bool FakeService::wait_for_submitted(std::size_t count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return submitted_.size() >= count; });
}

bool FakeService::wait_for_cancelled(std::size_t count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return cancelled_.size() >= count; });
}

std::size_t FakeService::num_cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_.size();
}

std::vector<router::ReplicaId> FakeService::drained() const {
  const std::lock_guard lock(mutex_);
  return drained_;
}

std::size_t FakeService::num_outputs() const {
  const std::lock_guard lock(mutex_);
  return num_outputs_;
}

std::shared_ptr<const router::ServedModel> FakeService::find_model(std::string_view name) const {
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [&](const auto& model) { return model->name == name; });
  return found == models_.end() ? nullptr : *found;
}

router::RequestId FakeService::submit(router::Request request,
                                      std::shared_ptr<router::OutputSink> sink) {
  auto running = std::make_shared<Running>();
  {
    const std::lock_guard lock(mutex_);
    request.id = submitted_.size() + 1;
    running->id = request.id;
    running->sink = std::move(sink);
    for (router::Output& output : script_(request))
      running->outputs.push_back(std::move(output));
    submitted_.push_back(request);
  }
  changed_.notify_all();
  router_.post([this, running] { step(running); });
  return request.id;
}

/// Gives one output and comes back for the next, so that requests take turns.
void FakeService::step(const std::shared_ptr<Running>& running) {
  router::Output output;
  {
    std::unique_lock lock(mutex_);
    if (cancelled_.contains(running->id) || running->outputs.empty()) return;
    if (held_) {
      changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return !held_; });
      lock.unlock();
      return router_.post([this, running] { step(running); });
    }
    if (gap_ > Duration::zero()) {
      lock.unlock();
      std::this_thread::sleep_for(gap_);
      lock.lock();
    }
    output = std::move(running->outputs.front());
    running->outputs.pop_front();
    output.request = running->id;
    ++num_outputs_;
  }
  running->sink->on_output(std::move(output));
  router_.post([this, running] { step(running); });
}

void FakeService::cancel(router::RequestId request) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.insert(request);
  }
  changed_.notify_all();
}

void FakeService::status(std::function<void(router::RouterStatus)> done) {
  router_.post([done = std::move(done)] {
    router::RouterStatus status;
    status.queued_requests = 3;
    status.buckets = {{.max_tokens = 128, .requests = 3}};
    status.replicas.push_back({.id = 1, .model = "fake", .state = "ready", .kv_total = 10});
    status.replicas[0].ranks.push_back(
        {.worker = "w0", .pid = 42, .state = "ready", .layers = {0, 15}});
    done(status);
  });
}

void FakeService::metrics(std::function<void(router::RouterMetrics)> done) {
  router_.post([this, done = std::move(done)] {
    router::RouterMetrics metrics;
    metrics.models.resize(models_.size());
    metrics.models[0].time_to_first_token_s.observe(0.03);
    metrics.models[0].finished[1] = 7;
    metrics.status.replicas.push_back(
        {.id = 1, .model = "fake", .state = "ready", .kv_total = 10, .kv_used = 4});
    done(std::move(metrics));
  });
}

void FakeService::drain(router::ReplicaId replica, std::function<void(Status)> done) {
  router_.post([this, replica, done = std::move(done)] {
    if (replica != 1) return done(not_found(str_cat("there is no replica ", replica)));
    {
      const std::lock_guard lock(mutex_);
      drained_.push_back(replica);
    }
    done({});
  });
}

bool FakeService::run_in_pool(std::function<void()> job) {
  if (pool_is_full) return false;
  pool_.post(std::move(job));
  return true;
}

std::vector<router::Output> say(const router::Request& request,
                                const std::vector<std::string>& pieces) {
  const wire::GenerationParams& params = request.params;
  const std::size_t room = params.max_tokens.value_or(1000);
  std::vector<router::Output> outputs;
  if (params.num_prompt_logprobs >= 0) {
    router::Output& scores = outputs.emplace_back();
    for (std::size_t i = 0; i < request.prompt.size(); ++i) {
      scores.prompt_tokens.push_back(
          scored(request.prompt[i], params.num_prompt_logprobs, /*has_logprob=*/i > 0));
    }
  }
  const bool has_logprobs = params.num_logprobs >= 0;
  for (std::size_t i = 0; i < std::min(room, pieces.size()); ++i) {
    router::Output& output = outputs.emplace_back();
    output.text = pieces[i];
    output.tokens.push_back(
        scored(static_cast<unsigned char>(pieces[i].front()), params.num_logprobs, has_logprobs));
  }
  const bool ends = room > pieces.size();
  if (ends) {
    outputs.emplace_back().tokens.push_back(
        scored(FakeTokenizer::kEnd, params.num_logprobs, has_logprobs));
  } else if (outputs.empty()) {
    outputs.emplace_back();
  }
  router::Output& last = outputs.back();
  last.finish = ends ? wire::FinishReason::kStop : wire::FinishReason::kLength;
  last.usage.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
  last.usage.completion_tokens =
      static_cast<std::uint32_t>(std::min(room, pieces.size()) + (ends ? 1 : 0));
  return outputs;
}

std::vector<router::Output> refuse(Status status, std::uint32_t retry_after_s) {
  router::Output output;
  output.finish = wire::FinishReason::kError;
  output.status = std::move(status);
  output.retry_after_s = retry_after_s;
  return {output};
}

}  // namespace brigade::testing
