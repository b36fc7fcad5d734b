// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/model/jinja/budget.h"
#include "common/model/jinja/lexer.h"

namespace brigade::model::jinja {

/// What both halves of the parser read from.
class TokenStream final {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& current() const { return tokens_[pos_]; }
  [[nodiscard]] const Token& look() const {
    return tokens_[pos_ + 1 < tokens_.size() ? pos_ + 1 : pos_];
  }
  const Token& next() {
    const Token& token = current();
    if (pos_ + 1 < tokens_.size()) ++pos_;
    return token;
  }

  [[nodiscard]] bool at(TokenKind kind) const { return current().kind == kind; }
  [[nodiscard]] bool at_name(std::string_view name) const {
    return is(current(), TokenKind::kName, name);
  }
  [[nodiscard]] bool at_operator(std::string_view symbol) const {
    return is(current(), TokenKind::kOperator, symbol);
  }
  [[nodiscard]] bool look_name(std::string_view name) const {
    return is(look(), TokenKind::kName, name);
  }
  [[nodiscard]] bool look_operator(std::string_view symbol) const {
    return is(look(), TokenKind::kOperator, symbol);
  }

  bool skip_name(std::string_view name) { return skip(at_name(name)); }
  bool skip_operator(std::string_view symbol) { return skip(at_operator(symbol)); }

  const Token& expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) fail_expected(what);
    return next();
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail_expected(str_cat("'", name, "'"));
  }
  void expect_operator(std::string_view symbol) {
    if (!skip_operator(symbol)) fail_expected(str_cat("'", symbol, "'"));
  }

  [[noreturn]] void fail_expected(std::string_view what) const {
    fail_at(str_cat("expected ", what, ", got ", describe(current())));
  }
  [[noreturn]] void fail_at(std::string_view message) const {
    fail(str_cat("chat template, line ", current().line, ": ", message));
  }

 private:
  static bool is(const Token& token, TokenKind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }
  bool skip(bool matches) {
    if (matches) next();
    return matches;
  }

  std::vector<Token> tokens_;  ///< the last is kEnd
  std::size_t pos_ = 0;
};

}  // namespace brigade::model::jinja
