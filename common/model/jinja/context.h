// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "common/model/jinja/budget.h"
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

 private:
  Budget budget_;
  std::int64_t now_s_;
  int depth_ = 0;
  std::deque<Namespace> namespaces_;
};

}  // namespace brigade::model::jinja
