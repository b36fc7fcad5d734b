// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/model/jinja/ast.h"
#include "common/model/jinja/budget.h"
#include "common/model/jinja/token_stream.h"

namespace brigade::model::jinja {

[[nodiscard]] int depth_of(const ExprPtr& expr);
[[nodiscard]] int depth_of(const std::vector<ExprPtr>& exprs);
[[nodiscard]] int depth_of(const CallArgs& args);

/// Recursive descent over Jinja2's expression grammar, one function a level of precedence.
class ExpressionParser final {
 public:
  ExpressionParser(TokenStream& tokens, int& depth) : tokens_(tokens), depth_(depth) {}

  ExprPtr parse_expression();
  /// Without `a if b else c` (where `if` means something else).
  ExprPtr parse_or();
  /// An expression, or several with commas: a tuple. Ends at a tag's end, ), or the name `stop`.
  ExprPtr parse_tuple(bool with_conditional, std::string_view stop, bool parenthesised);
  /// `name(args) | name ...` after a pipe; `input` may be null.
  ExprPtr parse_filter(ExprPtr input);
  CallArgs parse_call_args();

 private:
  /// A node above a tree of that depth, which is bounded.
  template <typename Node>
  static ExprPtr make(int line, int child_depth, Node node) {
    if (child_depth >= kMaxParseDepth) {
      throw Error{resource_exhausted(str_cat(
          "chat template, line ", line, ": an expression nested deeper than ", kMaxParseDepth))};
    }
    return std::make_unique<const Expr>(
        Expr{.line = line, .depth = child_depth + 1, .node = std::move(node)});
  }

  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter);
  ExprPtr parse_primary();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr expr);
  ExprPtr parse_filters_and_tests(ExprPtr expr);
  ExprPtr parse_attribute(ExprPtr object);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_test(ExprPtr input);
  [[nodiscard]] bool at_test_argument() const;

  TokenStream& tokens_;
  int& depth_;
};

}  // namespace brigade::model::jinja
