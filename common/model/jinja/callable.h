// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/model/jinja/value.h"

namespace brigade::model::jinja {

class Context;
class Scope;
struct MacroNode;
struct For;

/// The arguments of a call, evaluated.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// A filter (`self` is what is piped in), a method (`self` is its object) or a global function
/// (`self` is undefined).
using Function = Value (*)(Context& context, const Value& self, const Args& args);

struct BoundFunction {
  std::string name;
  Function function;
  Value self;
};

/// A macro and where it was defined. A macro that outlives its scope sees the globals alone.
struct BoundMacro {
  const MacroNode* macro;
  std::weak_ptr<Scope> scope;
};

struct Callable {
  std::variant<BoundFunction, BoundMacro> target;
  int depth = 0;
};

/// The `loop` of a for statement, updated as the loop goes on.
struct LoopState {
  std::vector<Value> items;
  std::size_t index0 = 0;
  int loop_depth = 1;  ///< of calls of a recursive loop, from 1
  int depth = 1;       ///< as a value
  std::uint64_t serial = 0;
  const For* recursive = nullptr;  ///< the statement, where `loop(items)` may be called
  std::weak_ptr<Scope> scope;      ///< around it
};

}  // namespace brigade::model::jinja
