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

#include "common/base/check.h"
#include "common/base/strings.h"

namespace brigade::model {
namespace {

// White_Space as Oniguruma (HF's engine) has it: PCRE2's own \s adds U+180E.
#define SPACES \
  R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"
// The last alternatives of all: a run of white space leaves its last one to the word after it.
#define RUN_OF_SPACES "[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+"
#define LINE_ENDS "[" SPACES "]*[\\r\\n]+|"
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define PUNCTUATION " ?[^" SPACES "\\p{L}\\p{N}]+"
// A word's capitals and its small letters, as Tekken and GPT-4o tell them apart.
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL_LETTERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE_WORD "[^\\r\\n\\p{L}\\p{N}]?"

constexpr const char* kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" PUNCTUATION "|" RUN_OF_SPACES;
constexpr const char* kOneDigit = "\\p{N}";
constexpr const char* kLlama3 =
    ENDINGS "|" BEFORE_WORD "\\p{L}+|\\p{N}{1,3}|" PUNCTUATION "[\\r\\n]*|" LINE_ENDS RUN_OF_SPACES;
constexpr const char* kQwen2 =
    ENDINGS "|" BEFORE_WORD "\\p{L}+|\\p{N}|" PUNCTUATION "[\\r\\n]*|" LINE_ENDS RUN_OF_SPACES;
constexpr const char* kQwen35 = ENDINGS "|" BEFORE_WORD "[\\p{L}\\p{M}]+|\\p{N}| ?[^" SPACES
                                        "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINE_ENDS RUN_OF_SPACES;
constexpr const char* kTekken =
    BEFORE_WORD CAPITALS "*" SMALL_LETTERS "+|" BEFORE_WORD CAPITALS "+" SMALL_LETTERS
                         "*|\\p{N}|" PUNCTUATION "[\\r\\n/]*|" LINE_ENDS RUN_OF_SPACES;
constexpr const char* kGpt4o = BEFORE_WORD CAPITALS
    "*" SMALL_LETTERS "+" ENDINGS "?|" BEFORE_WORD CAPITALS "+" SMALL_LETTERS "*" ENDINGS
    "?|\\p{N}{1,3}|" PUNCTUATION "[\\r\\n/]*|" LINE_ENDS RUN_OF_SPACES;
constexpr const char* kDeepseek3 =
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINE_ENDS RUN_OF_SPACES;

#undef BEFORE_WORD
#undef SMALL_LETTERS
#undef CAPITALS
#undef PUNCTUATION
#undef ENDINGS
#undef LINE_ENDS
#undef RUN_OF_SPACES
#undef SPACES

/// Patterns run one after the other, each on the pieces of the one before; matches and the gaps
/// between them are both pieces (HF's Split, behaviour Isolated). For every pattern here the engine
/// needs a constant stack and, from each place, work linear in what the match then takes.
struct Recipe {
  std::string_view name;
  std::array<const char*, 4> patterns;  ///< nullptr: none
  PreTokenizerTraits traits = {};
};

constexpr PreTokenizerTraits kWholePiecesAndBos = {.whole_pieces = true, .add_bos = true};

/// The first of a family stands for it in messages.
constexpr Recipe kRecipes[] = {
    {"smollm", {kOneDigit, kGpt2}},
    {"gpt-2", {kGpt2}},
    {"llama-bpe", {kLlama3}, kWholePiecesAndBos},
    {"dbrx", {kLlama3}},
    {"qwen2", {kQwen2}},
    {"qwen35", {kQwen35}},
    {"tekken", {kTekken}, kWholePiecesAndBos},
    {"gpt-4o", {kGpt4o}},
    {"deepseek-v3", {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{30FF}]+", kDeepseek3}},
    // What llama.cpp does with a file that does not say: good for none, fair for many.
    {"default", {"[\\p{P}$+<=>^~|]+", kGpt2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};

/// Other names that files use for the same.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"", "default"},
    {"a.x-4.0", "gpt-2"},
    {"codeshell", "smollm"},
    {"command-r", "smollm"},
    {"deepseek-r1-qwen", "qwen2"},
    {"exaone", "smollm"},
    {"exaone4", "gpt-2"},
    {"falcon-h1", "llama-bpe"},
    {"falcon3", "llama-bpe"},
    {"gigachat", "gpt-2"},
    {"granite-docling", "gpt-2"},
    {"jais", "gpt-2"},
    {"kanana2", "gpt-4o"},
    {"kormo", "qwen2"},
    {"lfm2", "llama-bpe"},
    {"llama-v3", "llama-bpe"},
    {"llama3", "llama-bpe"},
    {"llama4", "gpt-4o"},
    {"megrez", "qwen2"},
    {"mellum", "gpt-2"},
    {"midm-2.0", "llama-bpe"},
    {"minerva-7b", "smollm"},
    {"mpt", "gpt-2"},
    {"olmo", "gpt-2"},
    {"phi-2", "gpt-2"},
    {"pixtral", "llama-bpe"},
    {"refact", "smollm"},
    {"smaug-bpe", "dbrx"},
    {"stablelm2", "qwen2"},
    {"starcoder", "smollm"},
    {"talkie", "gpt-4o"},
    {"trillion", "gpt-2"},
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
  PatternPreTokenizer(std::vector<Pattern> patterns, PreTokenizerTraits traits)
      : patterns_(std::move(patterns)), traits_(traits) {}

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

  [[nodiscard]] PreTokenizerTraits traits() const override { return traits_; }

 private:
  std::vector<Pattern> patterns_;
  PreTokenizerTraits traits_;
};

const Recipe* find_recipe(std::string_view name) {
  for (const auto& [alias, meant] : kAliases) {
    if (alias == name) name = meant;
  }
  const Recipe* recipe =
      std::find_if(std::begin(kRecipes), std::end(kRecipes),
                   [name](const Recipe& candidate) { return candidate.name == name; });
  return recipe == std::end(kRecipes) ? nullptr : recipe;
}

}  // namespace

Result<std::unique_ptr<const PreTokenizer>> PreTokenizer::make(std::string_view name) {
  const Recipe* recipe = find_recipe(name);
  if (recipe == nullptr) {
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
      std::make_unique<PatternPreTokenizer>(std::move(patterns), recipe->traits));
}

}  // namespace brigade::model
