// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace brigade {

/// One visitor of several lambdas, for std::visit.
template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace brigade
