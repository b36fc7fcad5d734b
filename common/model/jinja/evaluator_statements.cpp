// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "common/model/jinja/evaluator.h"
#include "common/model/jinja/format.h"
#include "common/model/jinja/nesting.h"

namespace brigade::model::jinja {
namespace {

/// About what a scope with its first variable takes.
constexpr std::size_t kScopeBytes = 256;

}  // namespace

Text Evaluator::render(const Block& block) {
  Text out;
  output_ = &out;
  run(block, globals_);
  output_ = nullptr;
  return out;
}

void Evaluator::print(const Text& text) {
  budget_.bytes(text.size());
  if (output_->size() + text.size() > kMaxOutputBytes) {
    throw Error{resource_exhausted(str_cat("more than ", kMaxOutputBytes, " bytes of output"))};
  }
  output_->append(text);
}

Text Evaluator::capture(const Block& block, const ScopePtr& scope) {
  Text out;
  Text* const outer = std::exchange(output_, &out);
  run(block, scope);
  output_ = outer;
  return out;
}

Evaluator::Flow Evaluator::run(const Block& block, const ScopePtr& scope) {
  const Nesting nesting(context_.depth(), kMaxEvalDepth);
  for (const Stmt& statement : block) {
    const Flow flow = run(statement, scope);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run(const Stmt& statement, const ScopePtr& scope) {
  budget_.step();
  line_ = statement.line;
  return std::visit([&](const auto& node) { return exec(node, scope); }, statement.node);
}

Evaluator::Flow Evaluator::exec(const Data& data, const ScopePtr&) {
  print(*data.text.text());
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const Output& output, const ScopePtr& scope) {
  print(to_text(budget_, eval(*output.value, *scope)));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const If& statement, const ScopePtr& scope) {
  for (const auto& [condition, body] : statement.branches) {
    if (eval(*condition, *scope).truthy()) return run(body, scope);
  }
  return run(statement.otherwise, scope);
}

std::vector<Value> Evaluator::loop_items(const For& statement, const Value& source,
                                         const ScopePtr& scope) {
  std::vector<Value> items = iterate(budget_, source);
  if (!statement.filter) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    const auto inner = std::make_shared<Scope>(scope);
    budget_.bytes(kScopeBytes);
    assign(statement.target, item, inner);
    if (eval(*statement.filter, *inner).truthy()) kept.push_back(std::move(item));
  }
  return kept;
}

Evaluator::Flow Evaluator::run_loop(const For& statement, const Value& source, int loop_depth,
                                    const ScopePtr& scope) {
  std::vector<Value> items = loop_items(statement, source, scope);
  if (items.empty()) return run(statement.otherwise, std::make_shared<Scope>(scope));
  const auto loop = std::make_shared<LoopState>();
  for (const Value& item : items)
    loop->depth = std::max(loop->depth, item.depth() + 1);
  loop->items = std::move(items);
  loop->loop_depth = loop_depth;
  loop->serial = context_.new_loop();
  if (statement.is_recursive) loop->recursive = &statement;
  loop->scope = scope;
  for (; loop->index0 < loop->items.size(); ++loop->index0) {
    budget_.bytes(kScopeBytes);
    const auto inner = std::make_shared<Scope>(scope);
    inner->set("loop", Value(std::shared_ptr<const LoopState>(loop)));
    assign(statement.target, loop->items[loop->index0], inner);
    if (run(statement.body, inner) == Flow::kBreak) break;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const For& statement, const ScopePtr& scope) {
  return run_loop(statement, eval(*statement.items, *scope), 1, scope);
}

Value Evaluator::call_loop(const LoopState& loop, const Args& args) {
  if (loop.recursive == nullptr) {
    fail("the loop must have the 'recursive' marker to be called recursively");
  }
  if (args.positional.size() != 1 || !args.named.empty()) fail("loop() takes one argument");
  const ScopePtr around = loop.scope.lock();
  Text out;
  Text* const outer = std::exchange(output_, &out);
  run_loop(*loop.recursive, args.positional[0], loop.loop_depth + 1, around ? around : globals_);
  output_ = outer;
  return out;
}

void Evaluator::assign(const Target& target, const Value& value, const ScopePtr& scope) {
  budget_.step();
  if (target.is_tuple) {
    const std::vector<Value> items = iterate(budget_, value);
    if (items.size() != target.items.size()) {
      fail(str_cat("cannot unpack ", items.size(), " values into ", target.items.size(), " names"));
    }
    for (std::size_t i = 0; i < items.size(); ++i)
      assign(target.items[i], items[i], scope);
    return;
  }
  if (target.object.empty()) return scope->set(target.name, value);
  const Value* object = scope->find(target.object);
  Namespace* name_space = object == nullptr ? nullptr : object->name_space();
  if (name_space == nullptr) fail("cannot assign attribute on non-namespace object");
  for (auto& [name, old] : name_space->attributes) {
    if (name == target.name) {
      old = value;
      return;
    }
  }
  name_space->attributes.emplace_back(target.name, value);
}

Evaluator::Flow Evaluator::exec(const Set& statement, const ScopePtr& scope) {
  assign(statement.target, eval(*statement.value, *scope), scope);
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const SetBlock& statement, const ScopePtr& scope) {
  Value value(capture(statement.body, std::make_shared<Scope>(scope)));
  if (statement.filter) value = apply_filters(*statement.filter, value, *scope);
  assign(statement.target, value, scope);
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const Macro& statement, const ScopePtr& scope) {
  scope->set(statement.macro->name, Value(std::make_shared<const Callable>(
                                        Callable{BoundMacro{statement.macro.get(), scope}, 0})));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const CallBlock& statement, const ScopePtr& scope) {
  const auto& node = std::get<Call>(statement.call->node);
  const Value callee = eval(*node.callee, *scope);
  Args args = eval_args(node.args, *scope);
  args.named.emplace_back("caller", Value(std::make_shared<const Callable>(
                                        Callable{BoundMacro{statement.caller.get(), scope}, 0})));
  print(to_text(budget_, call(callee, args)));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const FilterBlock& statement, const ScopePtr& scope) {
  const Value body(capture(statement.body, std::make_shared<Scope>(scope)));
  print(to_text(budget_, apply_filters(*statement.filter, body, *scope)));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const With& statement, const ScopePtr& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  for (const auto& [target, expr] : statement.values)
    assign(target, eval(*expr, *scope), inner);
  return run(statement.body, inner);
}

Evaluator::Flow Evaluator::exec(const Group& statement, const ScopePtr& scope) {
  return run(statement.body, std::make_shared<Scope>(scope));
}

Evaluator::Flow Evaluator::exec(const Break&, const ScopePtr&) {
  return Flow::kBreak;
}
Evaluator::Flow Evaluator::exec(const Continue&, const ScopePtr&) {
  return Flow::kContinue;
}

Value Evaluator::call_macro(const BoundMacro& bound, const Args& args) {
  const MacroNode& macro = *bound.macro;
  budget_.bytes(kScopeBytes + macro.parameters.size() * sizeof(Value));
  ScopePtr parent = bound.scope.lock();
  const auto scope = std::make_shared<Scope>(parent ? std::move(parent) : globals_);
  const std::size_t num_parameters = macro.parameters.size();
  if (args.positional.size() > num_parameters) {
    fail(str_cat("macro ", quoted(macro.name), " takes not more than ", num_parameters,
                 " argument(s)"));
  }
  std::vector<const Value*> given(num_parameters, nullptr);
  for (std::size_t i = 0; i < args.positional.size(); ++i)
    given[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto it = std::find(macro.parameters.begin(), macro.parameters.end(), name);
    budget_.step(num_parameters);
    if (it != macro.parameters.end()) {
      given[static_cast<std::size_t>(it - macro.parameters.begin())] = &value;
    } else if (name == "caller") {
      scope->set(name, value);
    } else {
      fail(str_cat("macro ", quoted(macro.name), " takes no keyword argument ", quoted(name)));
    }
  }
  const std::size_t first_default = num_parameters - macro.defaults.size();
  for (std::size_t i = 0; i < num_parameters; ++i) {
    const std::string& name = macro.parameters[i];
    if (given[i] != nullptr) {
      scope->set(name, *given[i]);
    } else if (i >= first_default) {
      scope->set(name, eval(*macro.defaults[i - first_default], *scope));
    } else {
      scope->set(name, Value::undefined(name));
    }
  }
  const int line = line_;
  Value out(capture(macro.body, scope));
  line_ = line;
  return out;
}

}  // namespace brigade::model::jinja
