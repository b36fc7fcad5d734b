// SPDX-License-Identifier: Apache-2.0
// The only file that knows PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "common/model/pre_tokenizer.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "common/base/strings.h"

namespace brigade::model {
namespace {

// White_Space as Oniguruma (HF's engine) has it: PCRE2's own \s adds U+180E.
#define SPACES \
  R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"

constexpr const char* kGpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES
                              "\\p{L}\\p{N}]+|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";
constexpr const char* kOneDigit = "\\p{N}";

#undef SPACES

/// Patterns run one after the other, each on the pieces of the one before; matches and the gaps
/// between them are both pieces (HF's Split, behaviour Isolated).
struct Recipe {
  std::string_view name;
  std::array<const char*, 2> patterns;  ///< nullptr: none
};

constexpr Recipe kRecipes[] = {
    {"smollm", {kOneDigit, kGpt2}},
    {"gpt-2", {kGpt2, nullptr}},
};

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct ContextFree {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

class Pattern final {
 public:
  static Result<Pattern> compile(const char* source) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    Pattern pattern;
    pattern.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source), PCRE2_ZERO_TERMINATED,
                                      PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (!pattern.code_) {
      return internal_error(str_cat("pre-tokenizer pattern: PCRE2 error ", error, " at ", offset));
    }
    // Without JIT (a kernel that forbids it) the interpreter does the same work at a fifth of the
    // speed.
    pcre2_jit_compile(pattern.code_.get(), PCRE2_JIT_COMPLETE);
    return pattern;
  }

  /// Appends to `out` what each of `pieces` falls into.
  void split(std::span<const std::string_view> pieces, std::vector<std::string_view>& out) const {
    const std::unique_ptr<pcre2_match_data, MatchFree> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    // A lookahead that fails gives back one character of its run: the work is linear, but PCRE2
    // counts it against a default of ten million a match.
    const std::unique_ptr<pcre2_match_context, ContextFree> context(
        pcre2_match_context_create(nullptr));
    INVARIANT(match && context) << "out of memory";
    pcre2_set_match_limit(context.get(), UINT32_MAX);
    for (const std::string_view piece : pieces) {
      split_piece(piece, match.get(), context.get(), out);
    }
  }

 private:
  Pattern() = default;

  void split_piece(std::string_view text, pcre2_match_data* match, pcre2_match_context* context,
                   std::vector<std::string_view>& out) const {
    std::size_t pos = 0;
    while (pos < text.size()) {
      const int rc = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), pos, PCRE2_NO_UTF_CHECK, match, context);
      INVARIANT(rc > 0 || rc == PCRE2_ERROR_NOMATCH) << "pre-tokenizer: PCRE2 error " << rc;
      if (rc == PCRE2_ERROR_NOMATCH) break;
      const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match);
      INVARIANT_LT(found[0], found[1]);
      if (found[0] > pos) out.push_back(text.substr(pos, found[0] - pos));
      out.push_back(text.substr(found[0], found[1] - found[0]));
      pos = found[1];
    }
    if (pos < text.size()) out.push_back(text.substr(pos));
  }

  std::unique_ptr<pcre2_code, CodeFree> code_;
};

class PatternPreTokenizer final : public PreTokenizer {
 public:
  explicit PatternPreTokenizer(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}

  void split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    if (text.empty()) return;
    std::vector<std::string_view> current = {text};
    std::vector<std::string_view> next;
    for (const Pattern& pattern : patterns_) {
      next.clear();
      pattern.split(current, next);
      current.swap(next);
    }
    pieces.insert(pieces.end(), current.begin(), current.end());
  }

 private:
  std::vector<Pattern> patterns_;
};

}  // namespace

Result<std::unique_ptr<const PreTokenizer>> PreTokenizer::make(std::string_view name) {
  const Recipe* recipe =
      std::find_if(std::begin(kRecipes), std::end(kRecipes),
                   [name](const Recipe& candidate) { return candidate.name == name; });
  if (recipe == std::end(kRecipes)) {
    std::string known;
    for (const Recipe& candidate : kRecipes)
      known += str_cat(' ', candidate.name);
    return invalid_argument(str_cat("unknown pre-tokenizer ", quoted(name), "; known:", known));
  }
  std::vector<Pattern> patterns;
  for (const char* source : recipe->patterns) {
    if (source == nullptr) break;
    ASSIGN_OR_RETURN(Pattern pattern, Pattern::compile(source));
    patterns.push_back(std::move(pattern));
  }
  return std::unique_ptr<const PreTokenizer>(
      std::make_unique<PatternPreTokenizer>(std::move(patterns)));
}

}  // namespace brigade::model
