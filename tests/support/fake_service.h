// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/time.h"
#include "router/api/service.h"

namespace brigade::testing {

/// Runs tasks one after another on a thread of its own.
class TaskThread final {
 public:
  TaskThread();
  ~TaskThread();
  void post(std::function<void()> task);

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  bool stopped_ = false;
  std::thread thread_;
};

/// A router without workers: what a request gets is a script. Outputs come from a thread of its
/// own, as the router's do, one at a time for as long as the request has not been cancelled.
class FakeService final : public router::Service {
 public:
  using Script = std::function<std::vector<router::Output>(const router::Request&)>;

  /// `num_models` models named `fake`, `fake-2`, ... with FakeTokenizer and a ChatML template.
  explicit FakeService(std::size_t num_models = 1, std::int64_t max_context = 512);

  void set_script(Script script);
  /// How long the router thread rests between two outputs of a request.
  void set_gap(Duration gap);
  /// While held, requests are taken but get no outputs.
  void hold(bool held);

  std::vector<router::Request> submitted() const;
  /// False when it takes longer than two seconds.
  bool wait_for_submitted(std::size_t count) const;
  bool wait_for_cancelled(std::size_t count) const;
  std::size_t num_cancelled() const;
  std::vector<router::ReplicaId> drained() const;
  std::size_t num_outputs() const;

  std::atomic<bool> is_ready = true;
  std::atomic<bool> is_accepting = true;
  std::atomic<bool> pool_is_full = false;

  [[nodiscard]] const std::vector<std::shared_ptr<const router::ServedModel>>& models()
      const override {
    return models_;
  }
  [[nodiscard]] std::shared_ptr<const router::ServedModel> find_model(
      std::string_view name) const override;
  router::RequestId submit(router::Request request,
                           std::shared_ptr<router::OutputSink> sink) override;
  void cancel(router::RequestId request) override;
  void status(std::function<void(router::RouterStatus)> done) override;
  void metrics(std::function<void(router::RouterMetrics)> done) override;
  void drain(router::ReplicaId replica, std::function<void(Status)> done) override;
  [[nodiscard]] bool ready() const override { return is_ready; }
  [[nodiscard]] bool accepting() const override { return is_accepting; }
  [[nodiscard]] bool run_in_pool(std::function<void()> job) override;

 private:
  struct Running {
    router::RequestId id = 0;
    std::shared_ptr<router::OutputSink> sink;
    std::deque<router::Output> outputs;
  };

  void step(const std::shared_ptr<Running>& running);

  std::vector<std::shared_ptr<const router::ServedModel>> models_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Script script_;
  Duration gap_{};
  bool held_ = false;
  std::vector<router::Request> submitted_;
  std::set<router::RequestId> cancelled_;
  std::vector<router::ReplicaId> drained_;
  std::size_t num_outputs_ = 0;
  TaskThread pool_;
  TaskThread router_;  // last: its tasks use everything above
};

/// Outputs for a request: `pieces` of text, one a token (its id is the piece's first byte), cut at
/// max_tokens, with log-probabilities -0.5, -1.5, ... and scores of the prompt where the request
/// asks for them. An end token comes last when there is room.
std::vector<router::Output> say(const router::Request& request,
                                const std::vector<std::string>& pieces);
/// One output that ends a request with an error.
std::vector<router::Output> refuse(Status status, std::uint32_t retry_after_s = 0);

}  // namespace brigade::testing
