// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/arrivals.h"

#include <cmath>

#include "common/base/random.h"

namespace brigade::tools {

double Arrivals::next() {
  if (count_ > 0 && count_ % burst_ == 0) {
    at_s_ -= std::log1p(-random_uniform(seed_, count_)) / group_rate_;
  }
  ++count_;
  return at_s_;
}

}  // namespace brigade::tools
