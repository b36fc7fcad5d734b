// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/evaluator.h"

#include <algorithm>

#include "common/model/jinja/format.h"
#include "common/model/jinja/nesting.h"
#include "common/model/jinja/slice.h"

namespace brigade::model::jinja {

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, old] : variables_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  variables_.emplace_back(name, std::move(value));
}

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
    for (const auto& [known, value] : scope->variables_) {
      if (known == name) return &value;
    }
  }
  return nullptr;
}

Evaluator::Evaluator(Context& context, std::vector<std::pair<std::string, Value>> globals)
    : context_(context), budget_(context.budget()), globals_(std::make_shared<Scope>(nullptr)) {
  for (auto& [name, value] : globals)
    globals_->set(name, std::move(value));
}

Value Evaluator::eval(const Expr& expr, const Scope& scope) {
  const Nesting nesting(context_.depth(), kMaxEvalDepth);
  budget_.step();
  line_ = expr.line;
  Value value = std::visit([&](const auto& node) { return eval(node, scope); }, expr.node);
  // Here every value passes before it can become part of another, which is one or two levels
  // deeper.
  if (value.depth() > kMaxValueDepth) {
    throw Error{resource_exhausted(str_cat("lists nested deeper than ", kMaxValueDepth))};
  }
  return value;
}

Value Evaluator::eval(const Literal& node, const Scope&) {
  return node.value;
}

Value Evaluator::eval(const Name& node, const Scope& scope) {
  if (const Value* value = scope.find(node.name)) return *value;
  if (const Function function = find_global(node.name)) {
    return Value(
        std::make_shared<const Callable>(Callable{BoundFunction{node.name, function, Value()}, 0}));
  }
  return Value::undefined(node.name);
}

Value Evaluator::eval(const ListExpr& node, const Scope& scope) {
  budget_.bytes(node.items.size() * sizeof(Value));
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExprPtr& item : node.items)
    items.push_back(eval(*item, scope));
  return node.is_tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Value Evaluator::eval(const DictExpr& node, const Scope& scope) {
  budget_.bytes(node.items.size() * 2 * sizeof(Value));
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [key_expr, value_expr] : node.items) {
    Value key = eval(*key_expr, scope);
    if (key.dict() != nullptr || (key.array() != nullptr && !key.array()->is_tuple)) {
      fail(str_cat("unhashable type: '", key.type_name(), "'"));
    }
    Value value = eval(*value_expr, scope);
    const auto it = std::find_if(items.begin(), items.end(),
                                 [&](const auto& item) { return equal(budget_, item.first, key); });
    if (it == items.end()) {
      items.emplace_back(std::move(key), std::move(value));
    } else {
      it->second = std::move(value);
    }
  }
  return Value::dict(std::move(items));
}

Value Evaluator::eval(const Not& node, const Scope& scope) {
  return Value(!eval(*node.operand, scope).truthy());
}

Value Evaluator::eval(const Sign& node, const Scope& scope) {
  const Value value = eval(*node.operand, scope);
  return node.minus ? negate(value) : apply(budget_, BinaryOp::kAdd, Value(std::int64_t{0}), value);
}

Value Evaluator::eval(const Binary& node, const Scope& scope) {
  const Value left = eval(*node.left, scope);
  const Value right = eval(*node.right, scope);
  return apply(budget_, node.op, left, right);
}

Value Evaluator::eval(const Logic& node, const Scope& scope) {
  Value left = eval(*node.left, scope);
  return left.truthy() == node.is_and ? eval(*node.right, scope) : left;
}

bool Evaluator::compare(CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::kEq:
      return equal(budget_, left, right);
    case CompareOp::kNe:
      return !equal(budget_, left, right);
    case CompareOp::kLt:
      return less(budget_, left, right);
    case CompareOp::kLe:
      return less(budget_, left, right) || equal(budget_, left, right);
    case CompareOp::kGt:
      return less(budget_, right, left);
    case CompareOp::kGe:
      return less(budget_, right, left) || equal(budget_, left, right);
    case CompareOp::kIn:
      return contains(budget_, right, left);
    case CompareOp::kNotIn:
      return !contains(budget_, right, left);
  }
  return false;
}

Value Evaluator::eval(const Compare& node, const Scope& scope) {
  Value left = eval(*node.first, scope);
  for (const auto& [op, expr] : node.rest) {
    Value right = eval(*expr, scope);
    if (!compare(op, left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Evaluator::eval(const Concat& node, const Scope& scope) {
  Text out;
  for (const ExprPtr& part : node.parts) {
    const Text text = to_text(budget_, eval(*part, scope));
    budget_.bytes(text.size());
    out.append(text);
  }
  return out;
}

Value Evaluator::eval(const Conditional& node, const Scope& scope) {
  if (eval(*node.condition, scope).truthy()) return eval(*node.then, scope);
  if (node.otherwise) return eval(*node.otherwise, scope);
  return Value::undefined("the inline if without else");
}

Value Evaluator::eval(const Attribute& node, const Scope& scope) {
  return get_attribute(context_, eval(*node.object, scope), node.name);
}

Value Evaluator::eval(const Subscript& node, const Scope& scope) {
  const Value object = eval(*node.object, scope);
  return get_item(context_, object, eval(*node.key, scope));
}

Value Evaluator::eval(const Slice& node, const Scope& scope) {
  const Value object = eval(*node.object, scope);
  const auto part = [&](const ExprPtr& expr) { return expr ? eval(*expr, scope) : Value(None()); };
  const Value begin = part(node.begin);
  const Value end = part(node.end);
  return slice(budget_, object, begin, end, part(node.step));
}

Args Evaluator::eval_args(const CallArgs& args, const Scope& scope) {
  Args out;
  budget_.bytes((args.positional.size() + args.named.size()) * sizeof(Value));
  for (const ExprPtr& expr : args.positional)
    out.positional.push_back(eval(*expr, scope));
  for (const auto& [name, expr] : args.named)
    out.named.emplace_back(name, eval(*expr, scope));
  if (args.positional_rest) {
    const std::vector<Value> rest = iterate(budget_, eval(*args.positional_rest, scope));
    out.positional.insert(out.positional.end(), rest.begin(), rest.end());
  }
  if (args.named_rest) {
    const Value rest = eval(*args.named_rest, scope);
    if (rest.dict() == nullptr) fail("argument after ** must be a mapping");
    for (const auto& [key, value] : rest.dict()->items) {
      if (key.text() == nullptr) fail("keywords must be strings");
      budget_.bytes(key.text()->size() + sizeof(Value));
      out.named.emplace_back(key.text()->str(), value);
    }
  }
  return out;
}

Value Evaluator::call(const Value& callee, const Args& args) {
  require_defined(callee);
  if (callee.loop() != nullptr) return call_loop(*callee.loop(), args);
  const Callable* callable = callee.callable();
  if (callable == nullptr) fail(str_cat("'", callee.type_name(), "' object is not callable"));
  if (const auto* macro = std::get_if<BoundMacro>(&callable->target)) {
    return call_macro(*macro, args);
  }
  const auto& bound = std::get<BoundFunction>(callable->target);
  return bound.function(context_, bound.self, args);
}

Value Evaluator::eval(const Call& node, const Scope& scope) {
  const Value callee = eval(*node.callee, scope);
  return call(callee, eval_args(node.args, scope));
}

Value Evaluator::eval(const FilterExpr& node, const Scope& scope) {
  const Value input = eval(*node.input, scope);
  if (node.filter == nullptr) fail(str_cat("unknown filter ", quoted(node.name)));
  return node.filter(context_, input, eval_args(node.args, scope));
}

Value Evaluator::eval(const TestExpr& node, const Scope& scope) {
  const Value input = eval(*node.input, scope);
  if (node.test == nullptr) fail(str_cat("unknown test ", quoted(node.name)));
  return Value(node.test(context_, input, eval_args(node.args, scope)));
}

Value Evaluator::apply_filters(const Expr& filter, const Value& input, const Scope& scope) {
  const Nesting nesting(context_.depth(), kMaxEvalDepth);
  const auto& node = std::get<FilterExpr>(filter.node);
  const Value inner = node.input ? apply_filters(*node.input, input, scope) : input;
  if (node.filter == nullptr) fail(str_cat("unknown filter ", quoted(node.name)));
  return node.filter(context_, inner, eval_args(node.args, scope));
}

}  // namespace brigade::model::jinja
