// SPDX-License-Identifier: Apache-2.0
#include "common/model/vocabulary_tokenizer.h"

#include <string>
#include <utility>

#include "common/model/chat_template.h"
#include "common/model/utf8.h"

namespace brigade::model {
namespace {

/// The algorithms must never see invalid UTF-8, whatever the caller forgot.
void append_valid(std::string_view text, std::string& out) {
  if (is_valid_utf8(text)) {
    out += text;
  } else {
    append_lossy_utf8(text, /*final=*/true, out);
  }
}

void find_special(std::string_view text, std::size_t from, const SpecialTokens& tokens,
                  std::vector<SpecialTokens::Match>& matches) {
  while (const auto match = tokens.find(text, from)) {
    matches.push_back(*match);
    from = match->begin + match->length;
  }
}

std::size_t skip_white_space(std::string_view text, std::size_t pos) {
  while (pos < text.size() && std::string_view(" \t\n\v\f\r").find(text[pos]) != std::string::npos)
    ++pos;
  return pos;
}

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  by_bytes_.reserve(vocabulary_.bytes.size());
  // Tokens can have the same bytes: special ones go before normal ones, those before single bytes.
  const auto add = [&](auto wanted) {
    for (std::int32_t id = 0; id < vocab_size(); ++id) {
      if (wanted(id)) by_bytes_.emplace(vocabulary_.bytes[id], id);
    }
  };
  add([&](std::int32_t id) { return is_special(id); });
  add([&](std::int32_t id) { return vocabulary_.is_normal(id); });
  add([](std::int32_t) { return true; });
}

void VocabularyTokenizer::encode(std::string_view text, bool parse_special,
                                 std::vector<std::int32_t>& ids) const {
  const PromptSegment segment{std::string(text), parse_special};
  encode_prompt({&segment, 1}, ids);
}

void VocabularyTokenizer::encode_prompt(std::span<const PromptSegment> segments,
                                        std::vector<std::int32_t>& ids) const {
  std::string text;
  std::vector<SpecialTokens::Match> matches;
  for (std::size_t i = 0; i < segments.size();) {
    const std::size_t begin = text.size();
    const bool trusted = segments[i].trusted;
    std::string run;
    for (; i < segments.size() && segments[i].trusted == trusted; ++i)
      append_valid(segments[i].text, run);
    text += normalize(std::move(run));
    find_special(text, begin, trusted ? vocabulary_.special : vocabulary_.always, matches);
  }
  const std::string_view view = text;
  std::size_t pos = 0;
  for (const SpecialTokens::Match& match : matches) {
    if (match.begin < pos) continue;  // white space that the token before has swallowed
    if (match.begin > pos) encode_ordinary(view.substr(pos, match.begin - pos), ids);
    ids.push_back(match.id);
    pos = match.begin + match.length;
    if (vocabulary_.strips_after(match.id)) pos = skip_white_space(view, pos);
  }
  if (pos < view.size()) encode_ordinary(view.substr(pos), ids);
}

std::string_view VocabularyTokenizer::token_bytes(std::int32_t id, bool special) const {
  if (id < 0 || id >= vocab_size()) return {};
  if (!special && vocabulary_.is_control(id)) return {};
  return vocabulary_.bytes[id];
}

bool VocabularyTokenizer::is_special(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return false;
  return vocabulary_.is_control(id) || vocabulary_.types[id] == TokenType::kUserDefined;
}

std::optional<std::int32_t> VocabularyTokenizer::find(std::string_view text) const {
  const auto it = by_bytes_.find(text);
  if (it == by_bytes_.end()) return std::nullopt;
  return it->second;
}

}  // namespace brigade::model
