// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/strings.h"
#include "common/model/charsmap.h"
#include "common/model/spelling.h"
#include "common/model/tokenizer_algorithms.h"
#include "common/model/utf8.h"
#include "common/model/vocabulary_tokenizer.h"

namespace brigade::model {
namespace {

/// Bounds the work at each place of a text. SentencePiece trains no piece beyond some tens of
/// bytes.
constexpr std::size_t kMaxPiece = 512;
constexpr float kUnknownPenalty = 10;  ///< below the worst piece, as SentencePiece has it

/// The pieces that text can become, in order of their bytes.
class PieceIndex final {
 public:
  /// `pieces`, by id, outlive it; `ids` are those that count, none of them empty.
  PieceIndex(std::span<const std::string> pieces, std::vector<std::int32_t> ids)
      : pieces_(pieces), ids_(std::move(ids)) {
    std::sort(ids_.begin(), ids_.end(), [&](auto a, auto b) { return piece(a) < piece(b); });
    std::size_t begin = 0;
    for (std::size_t byte = 0; byte < firsts_.size(); ++byte) {
      std::size_t end = begin;
      while (end < ids_.size() && static_cast<std::uint8_t>(piece(ids_[end])[0]) == byte)
        ++end;
      firsts_[byte] = std::span(ids_).subspan(begin, end - begin);
      begin = end;
    }
  }

  PieceIndex(const PieceIndex&) = delete;
  PieceIndex& operator=(const PieceIndex&) = delete;

  /// Calls `found(id, length)` for each piece that `text` (not empty) starts with.
  template <typename Found>
  void find(std::string_view text, const Found& found) const {
    std::span<const std::int32_t> range = firsts_[static_cast<std::uint8_t>(text[0])];
    for (std::size_t length = 1; !range.empty(); ++length) {
      // Of the pieces with these first bytes the shortest comes first.
      if (piece(range.front()).size() == length) {
        found(range.front(), length);
        range = range.subspan(1);
      }
      if (length == text.size()) return;
      range = with_byte(range, length, static_cast<std::uint8_t>(text[length]));
    }
  }

 private:
  [[nodiscard]] const std::string& piece(std::int32_t id) const {
    return pieces_[static_cast<std::size_t>(id)];
  }

  /// Those of the range, all longer than `at`, that have the byte there.
  [[nodiscard]] std::span<const std::int32_t> with_byte(std::span<const std::int32_t> range,
                                                        std::size_t at, std::uint8_t byte) const {
    const auto byte_of = [&](std::int32_t id) { return static_cast<std::uint8_t>(piece(id)[at]); };
    const auto begin = std::partition_point(range.begin(), range.end(),
                                            [&](auto id) { return byte_of(id) < byte; });
    const auto end =
        std::partition_point(begin, range.end(), [&](auto id) { return byte_of(id) == byte; });
    return {begin, end};
  }

  std::span<const std::string> pieces_;  ///< by id
  std::vector<std::int32_t> ids_;        ///< sorted by their pieces
  std::array<std::span<const std::int32_t>, 256> firsts_;
};

/// What encoding needs beside the vocabulary.
struct UnigramData {
  std::vector<std::string> pieces;  ///< by id, as the file spells them
  std::vector<float> scores;        ///< by id
  float unknown_score = 0;
  Charsmap charsmap;
  bool remove_extra_whitespaces = false;
};

/// SentencePiece's unigram model: of all ways to cut a text into pieces the one with the largest
/// sum of scores (log-probabilities), by Viterbi's algorithm. Time is O(text x longest piece).
class UnigramTokenizer final : public VocabularyTokenizer {
 public:
  UnigramTokenizer(Vocabulary vocabulary, UnigramData data)
      : VocabularyTokenizer(std::move(vocabulary)),
        data_(std::move(data)),
        index_(data_.pieces, ordinary_ids()),
        byte_ids_(byte_ids(this->vocabulary())) {}

 private:
  /// The best way to reach a place in the text.
  struct Node {
    float score = 0;
    std::int32_t id = kNoToken;  ///< the last piece, or kNoToken for an unknown character
    std::size_t begin = kUnreached;
  };
  static constexpr std::size_t kUnreached = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] std::vector<std::int32_t> ordinary_ids() const {
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < vocab_size(); ++id) {
      const bool is_empty = data_.pieces[static_cast<std::size_t>(id)].empty();
      if (vocabulary().is_normal(id) && !is_empty) ids.push_back(id);
    }
    return ids;
  }

  void encode_ordinary(std::string_view text, std::vector<std::int32_t>& ids) const override {
    const std::string normalized = normalized_text(text);
    if (normalized.empty()) return;
    const std::vector<Node> nodes = best_paths(normalized);
    std::vector<std::size_t> ends;
    for (std::size_t end = normalized.size(); end > 0; end = nodes[end].begin)
      ends.push_back(end);
    TokenAppender appender(vocabulary(), byte_ids_, ids);
    for (auto it = ends.rbegin(); it != ends.rend(); ++it) {
      const Node& node = nodes[*it];
      const auto piece = std::string_view(normalized).substr(node.begin, *it - node.begin);
      node.id == kNoToken ? appender.add_unknown(piece) : appender.add(node.id);
    }
  }

  /// Characters mapped, spaces spelt as pieces spell them. With remove_extra_whitespaces there is
  /// one space between words and none at the ends, but the prefix.
  [[nodiscard]] std::string normalized_text(std::string_view text) const {
    std::string out;
    bool after_space = data_.remove_extra_whitespaces;
    if (adds_space_prefix()) out += kSpaceText;
    const std::size_t prefix = out.size();
    while (!text.empty()) {
      const Charsmap::Step step = data_.charsmap.step(text);
      text.remove_prefix(step.length);
      std::string_view mapped = step.text;
      while (after_space && mapped.starts_with(' '))
        mapped.remove_prefix(1);
      if (mapped.empty()) continue;
      for (const char c : mapped)
        c == ' ' ? out.append(kSpaceText) : out.append(1, c);
      after_space = data_.remove_extra_whitespaces && mapped.ends_with(' ');
    }
    if (!data_.remove_extra_whitespaces) return out;
    if (out.size() == prefix) return {};
    while (out.ends_with(kSpaceText))
      out.resize(out.size() - kSpaceText.size());
    return out;
  }

  /// By place, from 0 to the text's end. Sums are added and kept as SentencePiece does it, to the
  /// bit.
  [[nodiscard]] std::vector<Node> best_paths(std::string_view text) const {
    std::vector<Node> nodes(text.size() + 1);
    const auto reach = [&](std::size_t begin, std::size_t end, std::int32_t id, float score) {
      const float sum = nodes[begin].score + score;
      Node& node = nodes[end];
      if (node.begin == kUnreached || sum > node.score) node = {sum, id, begin};
    };
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t character = utf8_step(text, begin).length;
      bool is_known = false;
      index_.find(text.substr(begin), [&](std::int32_t id, std::size_t length) {
        reach(begin, begin + length, id, data_.scores[static_cast<std::size_t>(id)]);
        is_known = is_known || length == character;
      });
      if (!is_known) reach(begin, begin + character, kNoToken, data_.unknown_score);
      begin += character;
    }
    return nodes;
  }

  const UnigramData data_;
  const PieceIndex index_;  ///< of data_.pieces
  const ByteIds byte_ids_;
};

Result<UnigramData> read_scores(const TokenizerData& data, const Vocabulary& vocabulary) {
  RETURN_IF_ERROR(check_scores(data));
  UnigramData out{.pieces = data.tokens,
                  .scores = {data.scores.begin(), data.scores.end()},
                  .remove_extra_whitespaces = data.remove_extra_whitespaces};
  float worst = std::numeric_limits<float>::max();
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const auto at = static_cast<std::size_t>(id);
    if (!vocabulary.is_normal(id)) continue;
    worst = std::min(worst, out.scores[at]);
    if (data.tokens[at].size() > kMaxPiece) {
      return data_loss(str_cat("tokenizer.ggml.tokens[", id, "] has ", data.tokens[at].size(),
                               " bytes; at most ", kMaxPiece, " are allowed"));
    }
  }
  out.unknown_score = worst - kUnknownPenalty;
  auto charsmap = Charsmap::parse(data.charsmap);
  if (!charsmap.ok()) return charsmap.status().with_context("tokenizer.ggml.precompiled_charsmap");
  out.charsmap = std::move(charsmap).value();
  return out;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_unigram_tokenizer(const TokenizerData& data) {
  ASSIGN_OR_RETURN(Vocabulary vocabulary, make_vocabulary(data, decode_spelling));
  vocabulary.add_eos = data.add_eos.value_or(true) && vocabulary.eos_id;
  vocabulary.add_space_prefix = data.add_space_prefix.value_or(true);
  RETURN_IF_ERROR(index_tokens(data).status());
  ASSIGN_OR_RETURN(UnigramData unigram, read_scores(data, vocabulary));
  return std::shared_ptr<const Tokenizer>(
      std::make_shared<UnigramTokenizer>(std::move(vocabulary), std::move(unigram)));
}

}  // namespace brigade::model
