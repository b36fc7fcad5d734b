// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/overloaded.h"
#include "common/base/time.h"
#include "router/core/types.h"

namespace brigade::router {

/// Takes the outputs of its choices, on the I/O thread.
class OutputReceiver {
 public:
  virtual ~OutputReceiver() = default;
  /// `index` is that of the choice; `result_at` as for OutputSink.
  virtual void on_output(std::size_t index, Output&& output, TimePoint result_at) = 0;
};

/// One output on its way: kept as a value, for one comes with each token.
struct OutputMail {
  std::shared_ptr<OutputReceiver> to;
  std::size_t index = 0;
  TimePoint result_at{};
  Output output;
};

/// Work for the I/O thread from other threads, in order. One wake for all that arrives while the
/// thread has not yet looked: a step's outputs for many streams cost one wake together. Bounded by
/// what live requests can produce; once closed, everything is dropped.
class Mailbox final {
 public:
  /// `wake` must make the I/O thread call run() soon. It is called under the lock, never after
  /// close().
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void post(std::function<void()> task) { add(std::move(task)); }
  void post(OutputMail mail) { add(std::move(mail)); }

  /// On the I/O thread: runs what is there.
  void run() {
    {
      std::lock_guard lock(mutex_);
      running_.swap(items_);
    }
    for (Item& item : running_) {
      std::visit(Overloaded{[](const std::function<void()>& task) { task(); },
                            [](OutputMail& mail) {
                              mail.to->on_output(mail.index, std::move(mail.output),
                                                 mail.result_at);
                            }},
                 item);
    }
    running_.clear();
  }

  void close() {
    std::vector<Item> dropped;  // destroyed outside the lock
    std::lock_guard lock(mutex_);
    wake_ = nullptr;
    dropped.swap(items_);
  }

 private:
  using Item = std::variant<std::function<void()>, OutputMail>;

  template <typename T>
  void add(T&& item) {
    std::lock_guard lock(mutex_);
    if (!wake_) return;
    items_.emplace_back(std::forward<T>(item));
    if (items_.size() == 1) wake_();
  }

  std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<Item> items_;
  std::vector<Item> running_;  ///< the I/O thread's; kept for its memory
};

}  // namespace brigade::router
