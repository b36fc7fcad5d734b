// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "common/model/jinja/expression_parser.h"
#include "common/model/jinja/lexer.h"
#include "common/model/jinja/nesting.h"
#include "common/model/jinja/token_stream.h"

namespace brigade::model::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class Parser final {
 public:
  explicit Parser(std::string_view source)
      : tokens_(tokenize(source)), expressions_(tokens_, depth_) {}

  Block run() {
    Block block = parse_block({});
    if (!tokens_.at(TokenKind::kEnd)) tokens_.fail_expected("the end of the template");
    return block;
  }

 private:
  [[nodiscard]] bool at_any(Names names) const {
    return std::any_of(names.begin(), names.end(),
                       [this](std::string_view name) { return tokens_.at_name(name); });
  }

  /// Statements up to a tag of one of `ends`, whose name is then the current token.
  Block parse_block(Names ends) {
    const Nesting nesting(depth_, kMaxParseDepth);
    Block block;
    while (!tokens_.at(TokenKind::kEnd)) {
      const int line = tokens_.current().line;
      if (tokens_.at(TokenKind::kData)) {
        block.push_back({line, Data{Value::string(tokens_.next().text, /*trusted=*/true)}});
      } else if (tokens_.at(TokenKind::kVariableBegin)) {
        tokens_.next();
        ExprPtr value = expressions_.parse_tuple(/*with_conditional=*/true, /*stop=*/{},
                                                 /*parenthesised=*/false);
        tokens_.expect(TokenKind::kVariableEnd, "'}}'");
        block.push_back({line, Output{std::move(value)}});
      } else {
        tokens_.expect(TokenKind::kBlockBegin, "a tag");
        if (at_any(ends)) return block;
        block.push_back(parse_statement());
        tokens_.expect(TokenKind::kBlockEnd, "'%}'");
      }
    }
    if (ends.size() > 0) {
      std::string expected;
      for (const std::string_view end : ends) {
        expected += str_cat(expected.empty() ? "" : " or ", "{% ", end, " %}");
      }
      tokens_.fail_expected(expected);
    }
    return block;
  }

  /// The body of a tag, from its end to past the name that ends the body.
  Block parse_body(Names ends) {
    tokens_.skip_operator(":");
    tokens_.expect(TokenKind::kBlockEnd, "'%}'");
    return parse_block(ends);
  }
  Block parse_body_and_end(std::string_view end) {
    Block body = parse_body({end});
    tokens_.next();
    return body;
  }

  Stmt parse_statement() {
    struct Entry {
      std::string_view name;
      Stmt (Parser::*parse)();
    };
    static constexpr Entry kStatements[] = {
        {"if", &Parser::parse_if},       {"for", &Parser::parse_for},
        {"set", &Parser::parse_set},     {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call},   {"filter", &Parser::parse_filter},
        {"with", &Parser::parse_with},   {"generation", &Parser::parse_generation},
        {"break", &Parser::parse_break}, {"continue", &Parser::parse_continue},
        {"print", &Parser::parse_print},
    };
    const Token& token = tokens_.current();
    const auto* const entry =
        std::find_if(std::begin(kStatements), std::end(kStatements), [&](const Entry& candidate) {
          return token.kind == TokenKind::kName && candidate.name == token.text;
        });
    constexpr std::string_view kReaders[] = {"include", "import", "from", "extends", "block"};
    if (token.kind == TokenKind::kName &&
        std::find(std::begin(kReaders), std::end(kReaders), token.text) != std::end(kReaders)) {
      tokens_.fail_at(
          str_cat("{% ", token.text, " %} is refused: a chat template reads no other template"));
    }
    if (entry == std::end(kStatements)) {
      tokens_.fail_at(str_cat("unknown tag ", describe(token)));
    }
    const int line = token.line;
    tokens_.next();
    Stmt statement = (this->*entry->parse)();
    statement.line = line;
    return statement;
  }

  Stmt parse_if() {
    If statement;
    while (true) {
      ExprPtr condition = expressions_.parse_tuple(/*with_conditional=*/false, /*stop=*/{},
                                                   /*parenthesised=*/false);
      Block body = parse_body({"elif", "else", "endif"});
      statement.branches.emplace_back(std::move(condition), std::move(body));
      const std::string end = tokens_.next().text;
      if (end == "elif") continue;
      if (end == "else") statement.otherwise = parse_body_and_end("endif");
      return {0, std::move(statement)};
    }
  }

  Stmt parse_for() {
    For statement;
    statement.target = parse_target("in");
    tokens_.expect_name("in");
    statement.items = expressions_.parse_tuple(/*with_conditional=*/false, "recursive",
                                               /*parenthesised=*/false);
    if (tokens_.skip_name("if")) statement.filter = expressions_.parse_expression();
    statement.is_recursive = tokens_.skip_name("recursive");
    ++loops_;
    statement.body = parse_body({"endfor", "else"});
    --loops_;
    if (tokens_.next().text == "else") statement.otherwise = parse_body_and_end("endfor");
    return {0, std::move(statement)};
  }

  Target parse_one_target() {
    const Nesting nesting(depth_, kMaxParseDepth);
    if (tokens_.skip_operator("(")) {
      Target target = parse_target({});
      tokens_.expect_operator(")");
      return target;
    }
    Target target;
    target.name = tokens_.expect(TokenKind::kName, "a name to assign to").text;
    constexpr std::string_view kConstants[] = {"true", "True", "false", "False", "none", "None"};
    if (std::find(std::begin(kConstants), std::end(kConstants), target.name) !=
        std::end(kConstants)) {
      tokens_.fail_at(str_cat("cannot assign to ", target.name));
    }
    if (tokens_.skip_operator(".")) {
      target.object = std::exchange(target.name, {});
      target.name = tokens_.expect(TokenKind::kName, "a name after '.'").text;
    }
    return target;
  }

  Target parse_target(std::string_view stop) {
    Target first = parse_one_target();
    if (!tokens_.at_operator(",")) return first;
    Target target;
    target.is_tuple = true;
    target.items.push_back(std::move(first));
    while (tokens_.skip_operator(",")) {
      if (tokens_.at_operator(")") || tokens_.at_operator("=") ||
          (!stop.empty() && tokens_.at_name(stop))) {
        break;
      }
      target.items.push_back(parse_one_target());
    }
    return target;
  }

  Stmt parse_set() {
    Target target = parse_target({});
    if (tokens_.skip_operator("=")) {
      return {
          0, Set{std::move(target), expressions_.parse_tuple(/*with_conditional=*/true, /*stop=*/{},
                                                             /*parenthesised=*/false)}};
    }
    ExprPtr filter = tokens_.skip_operator("|") ? expressions_.parse_filter(nullptr) : nullptr;
    return {0, SetBlock{std::move(target), std::move(filter), parse_body_and_end("endset")}};
  }

  void parse_signature(MacroNode& macro) {
    tokens_.expect_operator("(");
    while (!tokens_.at_operator(")")) {
      macro.parameters.push_back(tokens_.expect(TokenKind::kName, "the name of a parameter").text);
      if (tokens_.skip_operator("=")) {
        macro.defaults.push_back(expressions_.parse_expression());
      } else if (!macro.defaults.empty()) {
        tokens_.fail_at("a parameter without a default follows one with a default");
      }
      if (!tokens_.skip_operator(",")) break;
    }
    tokens_.expect_operator(")");
  }

  /// A break cannot leave a macro.
  std::unique_ptr<const MacroNode> finish_macro(MacroNode macro, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    macro.body = parse_body_and_end(end);
    loops_ = loops;
    return std::make_unique<const MacroNode>(std::move(macro));
  }

  Stmt parse_macro() {
    MacroNode macro;
    macro.name = tokens_.expect(TokenKind::kName, "the name of the macro").text;
    parse_signature(macro);
    return {0, Macro{finish_macro(std::move(macro), "endmacro")}};
  }

  Stmt parse_call() {
    MacroNode caller;
    caller.name = "caller";
    if (tokens_.at_operator("(")) parse_signature(caller);
    ExprPtr call = expressions_.parse_expression();
    if (!std::holds_alternative<Call>(call->node)) tokens_.fail_expected("a call");
    return {0, CallBlock{std::move(call), finish_macro(std::move(caller), "endcall")}};
  }

  Stmt parse_filter() {
    ExprPtr filter = expressions_.parse_filter(nullptr);
    return {0, FilterBlock{std::move(filter), parse_body_and_end("endfilter")}};
  }

  Stmt parse_with() {
    With statement;
    while (!tokens_.at(TokenKind::kBlockEnd)) {
      Target target = parse_one_target();
      tokens_.expect_operator("=");
      statement.values.emplace_back(std::move(target), expressions_.parse_expression());
      if (!tokens_.skip_operator(",")) break;
    }
    statement.body = parse_body_and_end("endwith");
    return {0, std::move(statement)};
  }

  Stmt parse_generation() { return {0, Group{parse_body_and_end("endgeneration")}}; }

  Stmt parse_print() {
    return {0, Output{expressions_.parse_tuple(/*with_conditional=*/true, /*stop=*/{},
                                               /*parenthesised=*/false)}};
  }

  Stmt parse_break() {
    if (loops_ == 0) tokens_.fail_at("'break' outside a loop");
    return {0, Break{}};
  }

  Stmt parse_continue() {
    if (loops_ == 0) tokens_.fail_at("'continue' outside a loop");
    return {0, Continue{}};
  }

  int depth_ = 0;
  int loops_ = 0;  ///< open for statements
  TokenStream tokens_;
  ExpressionParser expressions_;
};

}  // namespace

Block parse_template(std::string_view source) {
  return Parser(source).run();
}

}  // namespace brigade::model::jinja
