// SPDX-License-Identifier: Apache-2.0
// What follows a primary expression: attributes, subscripts, calls, filters and tests.
#include <algorithm>

#include "common/model/jinja/expression_parser.h"

namespace brigade::model::jinja {

ExprPtr ExpressionParser::parse_postfix(ExprPtr expr) {
  while (true) {
    if (tokens_.at_operator(".")) {
      expr = parse_attribute(std::move(expr));
    } else if (tokens_.at_operator("[")) {
      expr = parse_subscript(std::move(expr));
    } else if (tokens_.at_operator("(")) {
      expr = parse_call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::parse_attribute(ExprPtr object) {
  const int line = tokens_.current().line;
  const int depth = depth_of(object);
  tokens_.expect_operator(".");
  if (tokens_.at(TokenKind::kInteger)) {
    ExprPtr key = make(line, 0, Literal{Value(tokens_.next().integer)});
    return make(line, depth, Subscript{std::move(object), std::move(key)});
  }
  const std::string name = tokens_.expect(TokenKind::kName, "a name or number after '.'").text;
  return make(line, depth, Attribute{std::move(object), name});
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
  const int line = tokens_.current().line;
  tokens_.expect_operator("[");
  ExprPtr parts[3];
  std::size_t colons = 0;
  const auto at_end = [this] { return tokens_.at_operator("]") || tokens_.at_operator(":"); };
  if (tokens_.at_operator("]")) tokens_.fail_expected("a subscript");
  while (true) {
    if (!at_end()) parts[colons] = parse_expression();
    if (colons == 2 || !tokens_.skip_operator(":")) break;
    ++colons;
  }
  tokens_.expect_operator("]");
  const int depth =
      std::max({depth_of(object), depth_of(parts[0]), depth_of(parts[1]), depth_of(parts[2])});
  if (colons == 0) return make(line, depth, Subscript{std::move(object), std::move(parts[0])});
  return make(
      line, depth,
      Slice{std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])});
}

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  const int line = tokens_.current().line;
  CallArgs args = parse_call_args();
  const int depth = std::max(depth_of(callee), depth_of(args));
  return make(line, depth, Call{std::move(callee), std::move(args)});
}

CallArgs ExpressionParser::parse_call_args() {
  tokens_.expect_operator("(");
  CallArgs args;
  const auto ensure = [this](bool in_order) {
    if (!in_order) tokens_.fail_at("arguments in an order that Jinja does not allow");
  };
  while (!tokens_.at_operator(")")) {
    if (tokens_.skip_operator("*")) {
      ensure(!args.positional_rest && !args.named_rest);
      args.positional_rest = parse_expression();
    } else if (tokens_.skip_operator("**")) {
      ensure(!args.named_rest);
      args.named_rest = parse_expression();
    } else if (tokens_.at(TokenKind::kName) && tokens_.look_operator("=")) {
      ensure(!args.named_rest);
      const std::string name = tokens_.next().text;
      tokens_.next();
      args.named.emplace_back(name, parse_expression());
    } else {
      ensure(!args.positional_rest && !args.named_rest && args.named.empty());
      args.positional.push_back(parse_expression());
    }
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator(")");
  return args;
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr expr) {
  while (true) {
    if (tokens_.skip_operator("|")) {
      expr = parse_filter(std::move(expr));
    } else if (tokens_.at_name("is")) {
      expr = parse_test(std::move(expr));
    } else if (tokens_.at_operator("(")) {
      expr = parse_call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::parse_filter(ExprPtr input) {
  while (true) {
    const int line = tokens_.current().line;
    const std::string name = tokens_.expect(TokenKind::kName, "the name of a filter").text;
    CallArgs args;
    if (tokens_.at_operator("(")) args = parse_call_args();
    const int depth = std::max(depth_of(input), depth_of(args));
    input =
        make(line, depth, FilterExpr{std::move(input), name, find_filter(name), std::move(args)});
    if (!tokens_.skip_operator("|")) return input;
  }
}

bool ExpressionParser::at_test_argument() const {
  const Token& token = tokens_.current();
  switch (token.kind) {
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kName:
      return token.text != "else" && token.text != "or" && token.text != "and";
    case TokenKind::kOperator:
      return token.text == "[" || token.text == "{";
    default:
      return false;
  }
}

ExprPtr ExpressionParser::parse_test(ExprPtr input) {
  const int line = tokens_.current().line;
  tokens_.expect_name("is");
  const bool negated = tokens_.skip_name("not");
  const std::string name = tokens_.expect(TokenKind::kName, "the name of a test").text;
  CallArgs args;
  if (tokens_.at_operator("(")) {
    args = parse_call_args();
  } else if (at_test_argument()) {
    if (tokens_.at_name("is")) tokens_.fail_at("tests with 'is' cannot be chained");
    args.positional.push_back(parse_postfix(parse_primary()));
  }
  const int depth = std::max(depth_of(input), depth_of(args));
  ExprPtr test =
      make(line, depth, TestExpr{std::move(input), name, find_test(name), std::move(args)});
  return negated ? make(line, depth + 1, Not{std::move(test)}) : std::move(test);
}

}  // namespace brigade::model::jinja
