// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "common/base/strings.h"
#include "common/model/bpe.h"
#include "common/model/pre_tokenizer.h"
#include "common/model/tokenizer_algorithms.h"
#include "common/model/utf8.h"
#include "common/model/vocabulary_tokenizer.h"

namespace brigade::model {
namespace {

constexpr std::size_t kMaxMerges = std::size_t{1} << 24;
constexpr std::int32_t kNoToken = -1;

using ByteIds = std::array<std::int32_t, 256>;

/// GPT-2's byte-level alphabet: bytes that print (33-126, 161-172, 174-255) stand for themselves as
/// code points, the other 68 are U+0100, U+0101, ... in order.
std::array<char32_t, 256> byte_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    alphabet[byte] = prints ? byte : next++;
  }
  return alphabet;
}

/// The bytes a token's text stands for; the text itself when it has a character outside the
/// alphabet, as HF's ByteLevel decoder does.
std::string bytes_of(std::string_view text, const std::unordered_map<char32_t, char>& bytes) {
  std::string out;
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Step step = utf8_step(text, pos);
    const auto it =
        step.kind == Utf8Step::Kind::kCharacter ? bytes.find(step.code_point) : bytes.end();
    if (it == bytes.end()) return std::string(text);
    out += it->second;
    pos += step.length;
  }
  return out;
}

class ByteBpeTokenizer final : public VocabularyTokenizer {
 public:
  /// `byte_ids[b]` is the token of byte b, or kNoToken: such bytes are dropped, and their
  /// neighbours meet, as in HF tokenizers without an unknown token.
  ByteBpeTokenizer(Vocabulary vocabulary, std::unique_ptr<const PreTokenizer> pre,
                   const ByteIds& byte_ids, const std::vector<Merge>& merges)
      : VocabularyTokenizer(std::move(vocabulary)),
        pre_(std::move(pre)),
        byte_ids_(byte_ids),
        bpe_(merges) {}

 private:
  void encode_ordinary(std::string_view text, std::vector<std::int32_t>& ids) const override {
    std::vector<std::string_view> pieces;
    pre_->split(text, pieces);
    for (const std::string_view piece : pieces)
      encode_piece(piece, ids);
  }

  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (pre_->traits().whole_pieces) {
      const auto id = find(piece);
      if (id && vocabulary().is_normal(*id)) return ids.push_back(*id);
    }
    const std::size_t begin = ids.size();
    for (const char c : piece) {
      const std::int32_t id = byte_ids_[static_cast<std::uint8_t>(c)];
      if (id != kNoToken) ids.push_back(id);
    }
    bpe_.merge(ids, begin);
  }

  std::unique_ptr<const PreTokenizer> pre_;
  ByteIds byte_ids_;
  Bpe bpe_;
};

/// Turns the data's merges from texts to ids.
class MergeReader final {
 public:
  MergeReader(const TokenizerData& data, const TokenIndex& index, const Vocabulary& vocabulary)
      : data_(data), index_(index), vocabulary_(vocabulary) {}

  Result<std::vector<Merge>> read() const {
    if (data_.merges.size() > kMaxMerges) {
      return data_loss(str_cat("tokenizer.ggml.merges has ", data_.merges.size(),
                               " entries, more than ", kMaxMerges));
    }
    std::vector<Merge> merges;
    merges.reserve(data_.merges.size());
    std::string joined;
    for (std::size_t i = 0; i < data_.merges.size(); ++i) {
      const std::string_view text = data_.merges[i];
      const std::size_t space = text.find(' ', 1);
      if (space == std::string::npos || space + 1 == text.size()) {
        return data_loss(
            str_cat("tokenizer.ggml.merges[", i, "] ", quoted(text), " is not two tokens"));
      }
      Merge merge;
      merge.rank = static_cast<std::int32_t>(i);
      const std::string_view left = text.substr(0, space);
      const std::string_view right = text.substr(space + 1);
      joined.assign(left).append(right);
      ASSIGN_OR_RETURN(merge.left, part(i, left));
      ASSIGN_OR_RETURN(merge.right, part(i, right));
      ASSIGN_OR_RETURN(merge.merged, part(i, joined));
      // Ordinary text must not become a control token, whatever the file says.
      if (!vocabulary_.is_control(merge.merged)) merges.push_back(merge);
    }
    return merges;
  }

 private:
  Result<std::int32_t> part(std::size_t index, std::string_view text) const {
    const auto it = index_.find(text);
    if (it != index_.end()) return it->second;
    return data_loss(str_cat("tokenizer.ggml.merges[", index, "] ", quoted(data_.merges[index]),
                             " names ", quoted(text), ", which is no token"));
  }

  const TokenizerData& data_;
  const TokenIndex& index_;
  const Vocabulary& vocabulary_;
};

/// The token each byte starts as.
ByteIds read_byte_ids(const TokenIndex& index, const Vocabulary& vocabulary) {
  const std::array<char32_t, 256> alphabet = byte_alphabet();
  ByteIds ids;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(alphabet[byte], text);
    const auto it = index.find(text);
    const bool usable = it != index.end() && !vocabulary.is_control(it->second);
    ids[byte] = usable ? it->second : kNoToken;
  }
  return ids;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_byte_bpe_tokenizer(const TokenizerData& data) {
  auto pre = PreTokenizer::make(data.pre);
  if (!pre.ok()) return pre.status().with_context("tokenizer.ggml.pre");
  const std::array<char32_t, 256> alphabet = byte_alphabet();
  std::unordered_map<char32_t, char> bytes;
  for (std::size_t byte = 0; byte < 256; ++byte)
    bytes[alphabet[byte]] = static_cast<char>(byte);
  ASSIGN_OR_RETURN(Vocabulary vocabulary,
                   make_vocabulary(data, [&](std::string_view text, TokenType type) {
                     const bool is_raw = type == TokenType::kUserDefined ||
                                         type == TokenType::kControl || type == TokenType::kUnknown;
                     return Result<std::string>(is_raw ? std::string(text) : bytes_of(text, bytes));
                   }));
  const bool adds_bos = data.add_bos.value_or((*pre)->traits().add_bos);
  vocabulary.add_bos = adds_bos && vocabulary.bos_id;
  ASSIGN_OR_RETURN(const TokenIndex index, index_tokens(data));
  ASSIGN_OR_RETURN(const std::vector<Merge> merges, MergeReader(data, index, vocabulary).read());
  const ByteIds byte_ids = read_byte_ids(index, vocabulary);
  return std::shared_ptr<const Tokenizer>(std::make_shared<ByteBpeTokenizer>(
      std::move(vocabulary), std::move(pre).value(), byte_ids, merges));
}

}  // namespace brigade::model
