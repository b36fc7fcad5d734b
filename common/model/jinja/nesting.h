// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/strings.h"
#include "common/model/jinja/budget.h"

namespace brigade::model::jinja {

/// Counts one level of nesting while it lives.
class Nesting final {
 public:
  Nesting(int& depth, int max_depth) : depth_(depth) {
    if (depth_ >= max_depth) {
      throw Error{resource_exhausted(str_cat("nested deeper than ", max_depth))};
    }
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

}  // namespace brigade::model::jinja
