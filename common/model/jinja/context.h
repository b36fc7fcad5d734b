// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "common/model/jinja/budget.h"
#include "common/model/jinja/callable.h"
#include "common/model/jinja/value.h"

namespace brigade::model::jinja {

/// What one rendering shares with the built-in functions.
class Context {
 public:
  explicit Context(std::int64_t now_s) : now_s_(now_s) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] Budget& budget() { return budget_; }
  /// Seconds since 1970 in the time zone to print.
  [[nodiscard]] std::int64_t now_s() const { return now_s_; }
  /// Levels of evaluation open now, bounded by kMaxEvalDepth: whoever recurses counts with a
  /// Nesting.
  [[nodiscard]] int& depth() { return depth_; }
  [[nodiscard]] Namespace* new_namespace() { return &namespaces_.emplace_back(); }
  /// What loop.changed() was last given in that loop. Here and not in the loop, which could then
  /// hold itself.
  [[nodiscard]] Value& last_changed(const LoopState& loop) { return last_changed_[loop.serial]; }
  [[nodiscard]] std::uint64_t new_loop() { return ++num_loops_; }

 private:
  Budget budget_;
  std::int64_t now_s_;
  int depth_ = 0;
  std::deque<Namespace> namespaces_;
  std::map<std::uint64_t, Value> last_changed_;
  std::uint64_t num_loops_ = 0;
};

}  // namespace brigade::model::jinja
