// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/model/jinja/ast.h"
#include "common/model/jinja/context.h"

namespace brigade::model::jinja {

/// Variables of a block, and the block around it. Names are few: looked up from the front.
class Scope final {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}
  void set(std::string_view name, Value value);
  /// nullptr: not here and not around.
  [[nodiscard]] const Value* find(std::string_view name) const;

 private:
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<std::string, Value>> variables_;
};

/// One rendering. Throws Error.
class Evaluator final {
 public:
  Evaluator(Context& context, std::vector<std::pair<std::string, Value>> globals);

  Text render(const Block& block);
  /// The line of what is being evaluated, for errors.
  [[nodiscard]] int line() const { return line_; }

 private:
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };
  using ScopePtr = std::shared_ptr<Scope>;

  // Statements: evaluator_statements.cpp.
  Flow run(const Block& block, const ScopePtr& scope);
  Flow run(const Stmt& statement, const ScopePtr& scope);
  Flow exec(const Data& data, const ScopePtr& scope);
  Flow exec(const Output& output, const ScopePtr& scope);
  Flow exec(const If& statement, const ScopePtr& scope);
  Flow exec(const For& statement, const ScopePtr& scope);
  Flow exec(const Set& statement, const ScopePtr& scope);
  Flow exec(const SetBlock& statement, const ScopePtr& scope);
  Flow exec(const Macro& statement, const ScopePtr& scope);
  Flow exec(const CallBlock& statement, const ScopePtr& scope);
  Flow exec(const FilterBlock& statement, const ScopePtr& scope);
  Flow exec(const With& statement, const ScopePtr& scope);
  Flow exec(const Group& statement, const ScopePtr& scope);
  Flow exec(const Break& statement, const ScopePtr& scope);
  Flow exec(const Continue& statement, const ScopePtr& scope);
  Flow run_loop(const For& statement, const Value& source, int loop_depth, const ScopePtr& scope);
  std::vector<Value> loop_items(const For& statement, const Value& source, const ScopePtr& scope);
  Value call_loop(const LoopState& loop, const Args& args);
  void assign(const Target& target, const Value& value, const ScopePtr& scope);
  /// What the block prints, instead of printing it.
  Text capture(const Block& block, const ScopePtr& scope);
  Value call_macro(const BoundMacro& macro, const Args& args);
  void print(const Text& text);

  // Expressions: evaluator.cpp.
  Value eval(const Expr& expr, const Scope& scope);
  Value eval(const Literal& node, const Scope& scope);
  Value eval(const Name& node, const Scope& scope);
  Value eval(const ListExpr& node, const Scope& scope);
  Value eval(const DictExpr& node, const Scope& scope);
  Value eval(const Not& node, const Scope& scope);
  Value eval(const Sign& node, const Scope& scope);
  Value eval(const Binary& node, const Scope& scope);
  Value eval(const Logic& node, const Scope& scope);
  Value eval(const Compare& node, const Scope& scope);
  Value eval(const Concat& node, const Scope& scope);
  Value eval(const Conditional& node, const Scope& scope);
  Value eval(const Attribute& node, const Scope& scope);
  Value eval(const Subscript& node, const Scope& scope);
  Value eval(const Slice& node, const Scope& scope);
  Value eval(const Call& node, const Scope& scope);
  Value eval(const FilterExpr& node, const Scope& scope);
  Value eval(const TestExpr& node, const Scope& scope);
  bool compare(CompareOp op, const Value& left, const Value& right);
  Args eval_args(const CallArgs& args, const Scope& scope);
  Value call(const Value& callee, const Args& args);
  Value apply_filters(const Expr& filter, const Value& input, const Scope& scope);

  Context& context_;
  Budget& budget_;
  ScopePtr globals_;
  Text* output_ = nullptr;
  int line_ = 0;
};

}  // namespace brigade::model::jinja
