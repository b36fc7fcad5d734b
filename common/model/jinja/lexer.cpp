// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/base/strings.h"
#include "common/model/jinja/budget.h"
#include "common/model/jinja/string_literal.h"
#include "common/model/jinja/strings.h"
#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

std::size_t skip_spaces(std::string_view text, std::size_t pos) {
  while (pos < text.size()) {
    const Utf8Step step = utf8_step(text, pos);
    if (!is_space(step.code_point)) break;
    pos += step.length;
  }
  return pos;
}

/// Where the white space at the end of `text` begins.
std::size_t trailing_spaces(std::string_view text) {
  std::size_t end = 0;  // of the last character that is no space
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Step step = utf8_step(text, pos);
    pos += step.length;
    if (!is_space(step.code_point)) end = pos;
  }
  return end;
}

class Lexer final {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (pos_ < source_.size()) {
      const std::size_t tag = find_tag(pos_);
      if (tag == kNone) {
        add_data(source_.substr(pos_));
        advance(source_.size());
        break;
      }
      lex_tag(tag);
    }
    add(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(std::string_view what) const {
    fail(str_cat("chat template, line ", line_, ": ", what));
  }

  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    line_starting_ = to > pos_ && source_[to - 1] == '\n';
    pos_ = to;
  }

  void add(TokenKind kind, std::string text) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
  }

  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::kData, std::string(text));
  }

  [[nodiscard]] bool at(std::size_t pos, std::string_view text) const {
    return source_.substr(pos, text.size()) == text;
  }

  [[nodiscard]] std::size_t find_tag(std::size_t from) const {
    for (std::size_t pos = from;; ++pos) {
      pos = source_.find('{', pos);
      if (pos == kNone || pos + 1 >= source_.size()) return kNone;
      const char next = source_[pos + 1];
      if (next == '{' || next == '%' || next == '#') return pos;
    }
  }

  /// The data from here to the tag at `tag`, whose sign is at `sign`, with white space stripped as
  /// the sign says.
  void lex_data_before(std::size_t tag, std::size_t sign, bool is_variable) {
    std::string_view text = source_.substr(pos_, tag - pos_);
    const char mark = sign < source_.size() ? source_[sign] : '\0';
    if (mark == '-') {
      text = text.substr(0, trailing_spaces(text));
    } else if (mark != '+' && !is_variable) {
      const std::size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
      const bool at_line_start = line_begin > 0 || line_starting_;
      if (at_line_start && trailing_spaces(text.substr(line_begin)) == 0) {
        text = text.substr(0, line_begin);
      }
    }
    add_data(text);
  }

  void lex_tag(std::size_t tag) {
    const char kind = source_[tag + 1];
    lex_data_before(tag, tag + 2, kind == '{');
    advance(tag);
    const bool has_sign = at(tag + 2, "-") || at(tag + 2, "+");
    const std::size_t inside = tag + (has_sign ? 3 : 2);
    if (kind == '#') {
      lex_comment(inside);
    } else if (kind == '{') {
      add(TokenKind::kVariableBegin, {});
      advance(inside);
      lex_inside("}}", TokenKind::kVariableEnd);
    } else if (const auto raw = raw_begin(inside)) {
      advance(*raw);
      lex_raw();
    } else {
      add(TokenKind::kBlockBegin, {});
      advance(inside);
      lex_inside("%}", TokenKind::kBlockEnd);
    }
  }

  /// Where a block or comment that closes at `pos` ends, white space after it included; nothing
  /// when none closes there.
  [[nodiscard]] std::optional<std::size_t> closes(std::size_t pos, std::string_view close) const {
    if (at(pos, "-") && at(pos + 1, close)) return skip_spaces(source_, pos + 1 + close.size());
    const bool variable = close == "}}";
    if (!variable && at(pos, "+") && at(pos + 1, close)) return pos + 1 + close.size();
    if (!at(pos, close)) return std::nullopt;
    const std::size_t end = pos + close.size();
    return !variable && at(end, "\n") ? end + 1 : end;
  }

  void lex_comment(std::size_t inside) {
    for (std::size_t pos = inside; pos < source_.size(); ++pos) {
      if (source_[pos] != '-' && source_[pos] != '+' && source_[pos] != '#') continue;
      if (const auto end = closes(pos, "#}")) return advance(*end);
    }
    fail_here("the comment does not end: expected #}");
  }

  [[nodiscard]] std::optional<std::size_t> raw_begin(std::size_t inside) const {
    const std::size_t word = skip_spaces(source_, inside);
    if (!at(word, "raw")) return std::nullopt;
    const std::size_t close = skip_spaces(source_, word + 3);
    if (at(close, "-%}")) return skip_spaces(source_, close + 3);
    if (at(close, "%}")) return close + 2;
    return std::nullopt;
  }

  void lex_raw() {
    for (std::size_t tag = source_.find("{%", pos_); tag != kNone;
         tag = source_.find("{%", tag + 1)) {
      const bool has_sign = at(tag + 2, "-") || at(tag + 2, "+");
      const std::size_t word = skip_spaces(source_, tag + (has_sign ? 3 : 2));
      if (!at(word, "endraw")) continue;
      const auto end = closes(skip_spaces(source_, word + 6), "%}");
      if (!end) continue;
      lex_data_before(tag, tag + 2, /*is_variable=*/false);
      return advance(*end);
    }
    fail_here("the raw block does not end: expected {% endraw %}");
  }

  void lex_inside(std::string_view close, TokenKind end_kind) {
    std::string brackets;  // those open
    while (true) {
      advance(skip_spaces(source_, pos_));
      if (pos_ >= source_.size()) fail_here(str_cat("the tag does not end: expected ", close));
      if (brackets.empty()) {
        if (const auto end = closes(pos_, close)) {
          add(end_kind, std::string(close));
          return advance(*end);
        }
      }
      const char c = source_[pos_];
      if (is_digit(c)) {
        lex_number();
      } else if (is_name_start(c)) {
        std::size_t end = pos_;
        while (end < source_.size() && is_name_part(source_[end]))
          ++end;
        add(TokenKind::kName, std::string(source_.substr(pos_, end - pos_)));
        advance(end);
      } else if (c == '"' || c == '\'') {
        lex_string(c);
      } else {
        lex_operator(brackets);
      }
    }
  }

  void lex_string(char quote) {
    std::size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote)
      end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_here("the string does not end");
    std::optional<std::string> value = unescape(source_.substr(pos_ + 1, end - pos_ - 1));
    if (!value) fail_here("a bad escape in the string");
    add(TokenKind::kString, std::move(*value));
    advance(end + 1);
  }

  /// Digits with single underscores between them, from `pos`; the end, or `pos` when there is none.
  [[nodiscard]] std::size_t digits_end(std::size_t pos) const {
    std::size_t end = pos;
    while (end < source_.size() &&
           (is_digit(source_[end]) || (end > pos && source_[end] == '_' &&
                                       end + 1 < source_.size() && is_digit(source_[end + 1])))) {
      ++end;
    }
    return end;
  }

  void lex_number() {
    const auto part = [this](std::size_t end) {
      std::string digits(source_.substr(pos_, end - pos_));
      digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
      return digits;
    };
    std::size_t end = digits_end(pos_);
    bool is_float = false;
    const std::size_t whole_end = end;
    // `a.0.1` counts items: no fraction after a dot.
    const bool after_dot = pos_ > 0 && source_[pos_ - 1] == '.';
    if (!after_dot && at(end, ".") && digits_end(end + 1) > end + 1) {
      end = digits_end(end + 1);
      is_float = true;
    }
    if (!after_dot && (at(end, "e") || at(end, "E"))) {
      const std::size_t exponent = end + (at(end + 1, "+") || at(end + 1, "-") ? 2 : 1);
      if (digits_end(exponent) > exponent) {
        end = digits_end(exponent);
        is_float = true;
      }
    }
    Token token{.kind = is_float ? TokenKind::kFloat : TokenKind::kInteger, .line = line_};
    token.text = part(is_float ? end : whole_end);
    const char* const first = token.text.data();
    const char* const last = first + token.text.size();
    const std::errc error = is_float ? std::from_chars(first, last, token.number).ec
                                     : std::from_chars(first, last, token.integer).ec;
    if (error != std::errc())
      fail_here(str_cat("the number ", quoted(token.text), " is too large"));
    tokens_.push_back(std::move(token));
    advance(end);
  }

  void lex_operator(std::string& brackets) {
    constexpr std::string_view kLong[] = {"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view symbol : kLong) {
      if (at(pos_, symbol)) {
        add(TokenKind::kOperator, std::string(symbol));
        return advance(pos_ + 2);
      }
    }
    const char c = source_[pos_];
    if (std::string_view("+-*/%~[](){}<>=.:|,;").find(c) == kNone) {
      fail_here(str_cat("unexpected character ", quoted(source_.substr(pos_, 1))));
    }
    if (c == '(') brackets += ')';
    if (c == '[') brackets += ']';
    if (c == '{') brackets += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty() || brackets.back() != c) fail_here(str_cat("unexpected '", c, "'"));
      brackets.pop_back();
    }
    add(TokenKind::kOperator, std::string(1, c));
    advance(pos_ + 1);
  }

  const std::string_view source_;
  std::size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last tag ended with a newline
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return str_cat("string ", quoted(token.text));
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return quoted(token.text);
  }
}

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    throw Error{resource_exhausted(
        str_cat("chat template: ", source.size(), " bytes, more than ", kMaxSourceBytes))};
  }
  const std::string normalized = normalize_newlines(source);
  return Lexer(normalized).run();
}

}  // namespace brigade::model::jinja
