// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "common/base/strings.h"
#include "common/model/bpe.h"
#include "common/model/spelling.h"
#include "common/model/tokenizer_algorithms.h"
#include "common/model/utf8.h"
#include "common/model/vocabulary_tokenizer.h"

namespace brigade::model {
namespace {

constexpr char32_t kSpace = 0x2581;  ///< how SentencePiece writes a space

/// What text falls into before any merge: characters. Each that is a token, or part of one, has a
/// symbol; symbols from the vocabulary's size on are characters that are no token themselves. A
/// character that no token has is the symbol -1 - its code point.
class Characters final {
 public:
  std::int32_t symbol(char32_t character) const {
    const auto it = symbols_.find(character);
    return it == symbols_.end() ? -1 - static_cast<std::int32_t>(character) : it->second;
  }
  void add_token(char32_t character, std::int32_t id) { symbols_.emplace(character, id); }
  /// The symbol, made when there is none yet.
  std::int32_t add(char32_t character, std::int32_t vocab_size) {
    const auto next = vocab_size + static_cast<std::int32_t>(extra_.size());
    const auto [it, is_new] = symbols_.emplace(character, next);
    if (is_new) extra_.push_back(character);
    return it->second;
  }
  /// The character of a symbol that is no token.
  char32_t character(std::int32_t symbol, std::int32_t vocab_size) const {
    return symbol < 0 ? static_cast<char32_t>(-1 - symbol)
                      : extra_[static_cast<std::size_t>(symbol - vocab_size)];
  }

 private:
  std::unordered_map<char32_t, std::int32_t> symbols_;
  std::vector<char32_t> extra_;
};

/// What encoding needs beside the vocabulary.
struct Pieces {
  Characters characters;
  std::vector<Merge> merges;
  std::unordered_set<char32_t> joins_to_space;  ///< may stand before a space within a token
};

/// One space between words, none at the ends.
std::string without_extra_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

class SentencePieceTokenizer final : public VocabularyTokenizer {
 public:
  SentencePieceTokenizer(Vocabulary vocabulary, Pieces pieces, bool remove_extra_whitespaces)
      : VocabularyTokenizer(std::move(vocabulary)),
        characters_(std::move(pieces.characters)),
        byte_ids_(byte_ids(this->vocabulary())),
        joins_to_space_(std::move(pieces.joins_to_space)),
        bpe_(pieces.merges),
        remove_extra_whitespaces_(remove_extra_whitespaces) {}

 private:
  /// The sign for a space and a space are the same.
  [[nodiscard]] std::string normalize(std::string text) const override {
    return text.find(kSpaceText) == std::string::npos ? std::move(text) : with_spaces(text);
  }

  void encode_ordinary(std::string_view text, std::vector<std::int32_t>& ids) const override {
    if (!remove_extra_whitespaces_) return encode_words(text, ids);
    const std::string normalized = without_extra_spaces(text);
    if (!normalized.empty()) encode_words(normalized, ids);
  }

  /// Merges word by word: no token goes over the start of a word, unless the vocabulary has one
  /// with the character before it. So most merges see few symbols.
  void encode_words(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::size_t begin = ids.size();
    char32_t previous = 0;
    const auto add = [&](char32_t character) {
      const bool is_cut =
          character == kSpace && previous != 0 && !joins_to_space_.contains(previous);
      if (is_cut) begin = merge(begin, ids);
      ids.push_back(characters_.symbol(character));
      previous = character;
    };
    if (adds_space_prefix()) add(kSpace);
    for (std::size_t pos = 0; pos < text.size();) {
      const Utf8Step step = utf8_step(text, pos);
      add(step.code_point == ' ' ? kSpace : step.code_point);
      pos += step.length;
    }
    merge(begin, ids);
  }

  /// Turns the symbols from `begin` on into tokens; returns where the next word begins.
  std::size_t merge(std::size_t begin, std::vector<std::int32_t>& ids) const {
    bpe_.merge(ids, begin);
    const auto is_token = [this](std::int32_t id) { return id >= 0 && id < vocab_size(); };
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto unknown = std::find_if_not(first, ids.end(), is_token);
    if (unknown == ids.end()) return ids.size();
    const std::vector<std::int32_t> symbols(unknown, ids.end());
    ids.erase(unknown, ids.end());
    TokenAppender appender(vocabulary(), byte_ids_, ids);
    for (const std::int32_t symbol : symbols)
      is_token(symbol) ? appender.add(symbol) : appender.add_unknown(bytes_of(symbol));
    return ids.size();
  }

  [[nodiscard]] std::string bytes_of(std::int32_t symbol) const {
    std::string bytes;
    append_utf8(characters_.character(symbol, vocab_size()), bytes);
    return bytes;
  }

  Characters characters_;
  ByteIds byte_ids_;
  std::unordered_set<char32_t> joins_to_space_;
  Bpe bpe_;
  bool remove_extra_whitespaces_;
};

/// Finds the merges that the scores of a vocabulary stand for: every way to put a token together
/// from two, each as good as the token's score.
class PieceBuilder final {
 public:
  PieceBuilder(const TokenizerData& data, const TokenIndex& index, const Vocabulary& vocabulary)
      : data_(data), index_(index), vocabulary_(vocabulary) {}

  Result<Pieces> build() {
    RETURN_IF_ERROR(rank_scores());
    RETURN_IF_ERROR(check_lengths());
    add_characters();
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
      if (vocabulary_.is_normal(id)) add_merges(id);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const std::string& text(std::int32_t id) const {
    return data_.tokens[static_cast<std::size_t>(id)];
  }

  Status rank_scores() {
    RETURN_IF_ERROR(check_scores(data_));
    scores_ = data_.scores;
    std::sort(scores_.begin(), scores_.end(), std::greater<>());
    scores_.erase(std::unique(scores_.begin(), scores_.end()), scores_.end());
    return {};
  }

  /// Looking at every way to cut every token takes the sum of the squares of their lengths.
  Status check_lengths() {
    constexpr double kMaxWork = 4e9;
    double work = 0;
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
      const auto length = static_cast<double>(text(id).size());
      work += vocabulary_.is_normal(id) ? length * length : 0;
      if (work > kMaxWork) {
        return data_loss(str_cat("tokenizer.ggml.tokens[", id, "] of ", text(id).size(),
                                 " bytes is one too long: no vocabulary is like this"));
      }
    }
    return {};
  }

  void add_characters() {
    for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
      if (!vocabulary_.is_normal(id) || text(id).empty()) continue;
      const Utf8Step step = utf8_step(text(id), 0);
      const bool is_character =
          step.kind == Utf8Step::Kind::kCharacter && step.length == text(id).size();
      if (is_character) out_.characters.add_token(step.code_point, id);
    }
  }

  void add_merges(std::int32_t id) {
    const std::string_view whole = text(id);
    if (!is_valid_utf8(whole)) return;
    const auto it =
        std::lower_bound(scores_.begin(), scores_.end(), data_.scores[id], std::greater<>());
    const auto rank = static_cast<std::int32_t>(it - scores_.begin());
    char32_t previous = 0;
    for (std::size_t pos = 0; pos < whole.size();) {
      const Utf8Step step = utf8_step(whole, pos);
      if (pos > 0) {
        if (step.code_point == kSpace) out_.joins_to_space.insert(previous);
        const std::int32_t left = part(whole.substr(0, pos));
        const std::int32_t right = part(whole.substr(pos));
        if (left >= 0 && right >= 0) out_.merges.push_back({left, right, rank, id});
      }
      previous = step.code_point;
      pos += step.length;
    }
  }

  /// The symbol of a part of a token; negative where merging never makes one.
  std::int32_t part(std::string_view part) {
    const Utf8Step step = utf8_step(part, 0);
    if (step.length == part.size()) {
      return out_.characters.add(step.code_point, vocabulary_.size());
    }
    const auto it = index_.find(part);
    return it != index_.end() && vocabulary_.is_normal(it->second) ? it->second : -1;
  }

  const TokenizerData& data_;
  const TokenIndex& index_;
  const Vocabulary& vocabulary_;
  std::vector<double> scores_;  ///< those there are, the best first
  Pieces out_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_sentencepiece_tokenizer(const TokenizerData& data) {
  ASSIGN_OR_RETURN(Vocabulary vocabulary, make_vocabulary(data, decode_spelling));
  vocabulary.add_bos = data.add_bos.value_or(true) && vocabulary.bos_id;
  vocabulary.add_space_prefix = data.add_space_prefix.value_or(true);
  ASSIGN_OR_RETURN(const TokenIndex index, index_tokens(data));
  ASSIGN_OR_RETURN(Pieces pieces, PieceBuilder(data, index, vocabulary).build());
  return std::shared_ptr<const Tokenizer>(std::make_shared<SentencePieceTokenizer>(
      std::move(vocabulary), std::move(pieces), data.remove_extra_whitespaces));
}

}  // namespace brigade::model
