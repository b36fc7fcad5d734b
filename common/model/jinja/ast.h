// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/model/jinja/builtins.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/value.h"

namespace brigade::model::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr positional_rest;  ///< *expr, may be null
  ExprPtr named_rest;       ///< **expr, may be null
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListExpr {
  std::vector<ExprPtr> items;
  bool is_tuple = false;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct Not {
  ExprPtr operand;
};
struct Sign {
  bool minus;
  ExprPtr operand;
};
struct Binary {
  BinaryOp op;
  ExprPtr left;
  ExprPtr right;
};
struct Logic {
  bool is_and;
  ExprPtr left;
  ExprPtr right;
};
enum class CompareOp : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };
struct Compare {
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;  ///< a < b < c is a < b and b < c
};
struct Concat {
  std::vector<ExprPtr> parts;  ///< of `~`
};
struct Conditional {
  ExprPtr condition;
  ExprPtr then;
  ExprPtr otherwise;  ///< null: undefined
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Subscript {
  ExprPtr object;
  ExprPtr key;
};
struct Slice {
  ExprPtr object;
  ExprPtr begin;  ///< null: not given; so the others
  ExprPtr end;
  ExprPtr step;
};
struct Call {
  ExprPtr callee;
  CallArgs args;
};
struct FilterExpr {
  ExprPtr input;  ///< null in a filter or set block, where the body's text goes in
  std::string name;
  Function filter;  ///< null: unknown, an error when it is reached
  CallArgs args;
};
struct TestExpr {
  ExprPtr input;
  std::string name;
  Test test;  ///< null: unknown
  CallArgs args;
};

struct Expr {
  int line = 0;
  int depth = 1;  ///< of the tree below, bounded: it is walked (and freed) by recursion
  std::variant<Literal, Name, ListExpr, DictExpr, Not, Sign, Binary, Logic, Compare, Concat,
               Conditional, Attribute, Subscript, Slice, Call, FilterExpr, TestExpr>
      node;
};

struct Stmt;
using Block = std::vector<Stmt>;

/// What is assigned to: a name, a namespace's attribute (`object` not empty), or several of them.
struct Target {
  std::string object;
  std::string name;
  std::vector<Target> items;
  bool is_tuple = false;
};

struct Data {
  Value text;
};
struct Output {
  ExprPtr value;
};
struct If {
  std::vector<std::pair<ExprPtr, Block>> branches;
  Block otherwise;
};
struct For {
  Target target;
  ExprPtr items;
  ExprPtr filter;  ///< null: none
  Block body;
  Block otherwise;  ///< when there was nothing to go over
  bool is_recursive = false;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filter;  ///< chain of FilterExpr or null
  Block body;
};
struct MacroNode {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  ///< of the last parameters
  Block body;
};
struct Macro {
  std::unique_ptr<const MacroNode> macro;
};
struct CallBlock {
  ExprPtr call;  ///< a Call
  std::unique_ptr<const MacroNode> caller;
};
struct FilterBlock {
  ExprPtr filter;
  Block body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> values;
  Block body;
};
struct Group {  ///< {% generation %}: marks the assistant's text for training, prints as it is
  Block body;
};
struct Break {};
struct Continue {};

struct Stmt {
  int line = 0;
  std::variant<Data, Output, If, For, Set, SetBlock, Macro, CallBlock, FilterBlock, With, Group,
               Break, Continue>
      node;
};

}  // namespace brigade::model::jinja
