// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/model/jinja/budget.h"
#include "common/model/jinja/value.h"

namespace brigade::model::jinja {

/// Python's object[begin:end:step] of a string, list or tuple; None for a part that is not given.
[[nodiscard]] Value slice(Budget& budget, const Value& object, const Value& begin, const Value& end,
                          const Value& step);

}  // namespace brigade::model::jinja
