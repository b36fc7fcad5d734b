// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/expression_parser.h"

#include <algorithm>
#include <optional>

#include "common/model/jinja/nesting.h"

namespace brigade::model::jinja {
namespace {

std::optional<CompareOp> compare_op(const TokenStream& tokens) {
  constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::kEq}, {"!=", CompareOp::kNe}, {"<", CompareOp::kLt},
      {"<=", CompareOp::kLe}, {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  for (const auto& [symbol, op] : kOps) {
    if (tokens.at_operator(symbol)) return op;
  }
  if (tokens.at_name("in")) return CompareOp::kIn;
  if (tokens.at_name("not") && tokens.look_name("in")) return CompareOp::kNotIn;
  return std::nullopt;
}

}  // namespace

int depth_of(const ExprPtr& expr) {
  return expr ? expr->depth : 0;
}

int depth_of(const std::vector<ExprPtr>& exprs) {
  int depth = 0;
  for (const ExprPtr& expr : exprs)
    depth = std::max(depth, depth_of(expr));
  return depth;
}

int depth_of(const CallArgs& args) {
  int depth = std::max(
      {depth_of(args.positional), depth_of(args.positional_rest), depth_of(args.named_rest)});
  for (const auto& [name, expr] : args.named)
    depth = std::max(depth, depth_of(expr));
  return depth;
}

ExprPtr ExpressionParser::parse_expression() {
  const Nesting nesting(depth_, kMaxParseDepth);
  const int line = tokens_.current().line;
  ExprPtr expr = parse_or();
  while (tokens_.skip_name("if")) {
    ExprPtr condition = parse_or();
    ExprPtr otherwise = tokens_.skip_name("else") ? parse_expression() : nullptr;
    const int depth = std::max({depth_of(expr), depth_of(condition), depth_of(otherwise)});
    expr =
        make(line, depth, Conditional{std::move(condition), std::move(expr), std::move(otherwise)});
  }
  return expr;
}

ExprPtr ExpressionParser::parse_or() {
  const int line = tokens_.current().line;
  ExprPtr left = parse_and();
  while (tokens_.skip_name("or")) {
    ExprPtr right = parse_and();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(line, depth, Logic{false, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  const int line = tokens_.current().line;
  ExprPtr left = parse_not();
  while (tokens_.skip_name("and")) {
    ExprPtr right = parse_not();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(line, depth, Logic{true, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  const int line = tokens_.current().line;
  if (!tokens_.skip_name("not")) return parse_compare();
  const Nesting nesting(depth_, kMaxParseDepth);
  ExprPtr operand = parse_not();
  const int depth = depth_of(operand);
  return make(line, depth, Not{std::move(operand)});
}

ExprPtr ExpressionParser::parse_compare() {
  const int line = tokens_.current().line;
  ExprPtr first = parse_sum();
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
  int depth = depth_of(first);
  while (const std::optional<CompareOp> op = compare_op(tokens_)) {
    tokens_.next();
    if (*op == CompareOp::kNotIn) tokens_.next();
    rest.emplace_back(*op, parse_sum());
    depth = std::max(depth, depth_of(rest.back().second));
  }
  if (rest.empty()) return first;
  return make(line, depth, Compare{std::move(first), std::move(rest)});
}

ExprPtr ExpressionParser::parse_sum() {
  const int line = tokens_.current().line;
  ExprPtr left = parse_concat();
  while (tokens_.at_operator("+") || tokens_.at_operator("-")) {
    const BinaryOp op = tokens_.next().text == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
    ExprPtr right = parse_concat();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(line, depth, Binary{op, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const int line = tokens_.current().line;
  std::vector<ExprPtr> parts;
  parts.push_back(parse_product());
  while (tokens_.skip_operator("~"))
    parts.push_back(parse_product());
  if (parts.size() == 1) return std::move(parts[0]);
  const int depth = depth_of(parts);
  return make(line, depth, Concat{std::move(parts)});
}

ExprPtr ExpressionParser::parse_product() {
  constexpr std::pair<std::string_view, BinaryOp> kOps[] = {{"*", BinaryOp::kMul},
                                                            {"/", BinaryOp::kDiv},
                                                            {"//", BinaryOp::kFloorDiv},
                                                            {"%", BinaryOp::kMod}};
  const int line = tokens_.current().line;
  ExprPtr left = parse_power();
  while (true) {
    const auto* const op =
        std::find_if(std::begin(kOps), std::end(kOps),
                     [this](const auto& entry) { return tokens_.at_operator(entry.first); });
    if (op == std::end(kOps)) return left;
    tokens_.next();
    ExprPtr right = parse_power();
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(line, depth, Binary{op->second, std::move(left), std::move(right)});
  }
}

ExprPtr ExpressionParser::parse_power() {
  const int line = tokens_.current().line;
  ExprPtr left = parse_unary(/*with_filter=*/true);
  while (tokens_.skip_operator("**")) {
    ExprPtr right = parse_unary(/*with_filter=*/true);
    const int depth = std::max(depth_of(left), depth_of(right));
    left = make(line, depth, Binary{BinaryOp::kPow, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filter) {
  const Nesting nesting(depth_, kMaxParseDepth);
  const int line = tokens_.current().line;
  ExprPtr expr;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const bool minus = tokens_.next().text == "-";
    ExprPtr operand = parse_unary(/*with_filter=*/false);
    const int depth = depth_of(operand);
    expr = make(line, depth, Sign{minus, std::move(operand)});
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(std::move(expr));
  return with_filter ? parse_filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::parse_primary() {
  const int line = tokens_.current().line;
  if (tokens_.at(TokenKind::kName)) {
    const std::string name = tokens_.next().text;
    if (name == "true" || name == "True") return make(line, 0, Literal{Value(true)});
    if (name == "false" || name == "False") return make(line, 0, Literal{Value(false)});
    if (name == "none" || name == "None") return make(line, 0, Literal{Value(None())});
    return make(line, 0, Name{name});
  }
  if (tokens_.at(TokenKind::kString)) {
    std::string text;  // neighbours are one string
    while (tokens_.at(TokenKind::kString))
      text += tokens_.next().text;
    return make(line, 0, Literal{Value::string(text, /*trusted=*/true)});
  }
  if (tokens_.at(TokenKind::kInteger)) return make(line, 0, Literal{Value(tokens_.next().integer)});
  if (tokens_.at(TokenKind::kFloat)) return make(line, 0, Literal{Value(tokens_.next().number)});
  if (tokens_.at_operator("[")) return parse_list();
  if (tokens_.at_operator("{")) return parse_dict();
  if (!tokens_.skip_operator("(")) tokens_.fail_expected("an expression");
  ExprPtr expr = parse_tuple(/*with_conditional=*/true, /*stop=*/{}, /*parenthesised=*/true);
  tokens_.expect_operator(")");
  return expr;
}

ExprPtr ExpressionParser::parse_tuple(bool with_conditional, std::string_view stop,
                                      bool parenthesised) {
  const int line = tokens_.current().line;
  const auto at_end = [&] {
    return tokens_.at(TokenKind::kVariableEnd) || tokens_.at(TokenKind::kBlockEnd) ||
           tokens_.at_operator(")") || (!stop.empty() && tokens_.at_name(stop));
  };
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (!at_end()) {
    items.push_back(with_conditional ? parse_expression() : parse_or());
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !parenthesised) tokens_.fail_expected("an expression");
  const int depth = depth_of(items);
  return make(line, depth, ListExpr{std::move(items), /*is_tuple=*/true});
}

ExprPtr ExpressionParser::parse_list() {
  const int line = tokens_.current().line;
  tokens_.expect_operator("[");
  std::vector<ExprPtr> items;
  while (!tokens_.at_operator("]")) {
    items.push_back(parse_expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("]");
  const int depth = depth_of(items);
  return make(line, depth, ListExpr{std::move(items), /*is_tuple=*/false});
}

ExprPtr ExpressionParser::parse_dict() {
  const int line = tokens_.current().line;
  tokens_.expect_operator("{");
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
  int depth = 0;
  while (!tokens_.at_operator("}")) {
    ExprPtr key = parse_expression();
    tokens_.expect_operator(":");
    ExprPtr value = parse_expression();
    depth = std::max({depth, depth_of(key), depth_of(value)});
    items.emplace_back(std::move(key), std::move(value));
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("}");
  return make(line, depth, DictExpr{std::move(items)});
}

}  // namespace brigade::model::jinja
