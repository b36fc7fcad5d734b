// SPDX-License-Identifier: Apache-2.0
#include "common/model/charsmap.h"

#include <algorithm>
#include <cstring>

#include "common/base/strings.h"
#include "common/model/utf8.h"

namespace brigade::model {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
/// Longer sequences are not looked for, so that a trie with a ring in it takes bounded time. NFKC's
/// longest has some 20 bytes.
constexpr std::size_t kMaxSequence = 256;

// A unit of darts-clone's double array.
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8U & 1U) != 0;
}
std::uint32_t value(std::uint32_t unit) {
  return unit & 0x7fffffffU;
}
std::uint32_t label(std::uint32_t unit) {
  return unit & 0x800000ffU;
}
std::uint32_t offset(std::uint32_t unit) {
  return unit >> 10U << ((unit & 0x200U) >> 6U);
}

Status check_texts(std::string_view texts) {
  if (!texts.empty() && texts.back() != '\0') return data_loss("its last text has no end");
  std::size_t begin = 0;
  while (begin < texts.size()) {
    const std::size_t end = texts.find('\0', begin);
    if (end - begin > Charsmap::kMaxText) {
      return data_loss(str_cat("it makes a text of ", end - begin,
                               " bytes of a character; at most ", Charsmap::kMaxText,
                               " are allowed"));
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view blob) {
  Charsmap map;
  if (blob.empty()) return map;
  std::uint32_t trie_bytes = 0;
  if (blob.size() < sizeof trie_bytes) {
    return data_loss(str_cat("it has ", blob.size(), " bytes, too few for its header"));
  }
  std::memcpy(&trie_bytes, blob.data(), sizeof trie_bytes);
  blob.remove_prefix(sizeof trie_bytes);
  if (trie_bytes > blob.size() || trie_bytes % sizeof(std::uint32_t) != 0 || trie_bytes == 0) {
    return data_loss(
        str_cat("its trie is ", trie_bytes, " bytes of ", blob.size(), ", in units of 4"));
  }
  map.units_.resize(trie_bytes / sizeof(std::uint32_t));
  std::memcpy(map.units_.data(), blob.data(), trie_bytes);
  map.texts_ = blob.substr(trie_bytes);
  RETURN_IF_ERROR(check_texts(map.texts_));
  return map;
}

Charsmap::Match Charsmap::longest_match(std::string_view source) const {
  Match match;
  if (units_.empty()) return match;
  std::size_t node = offset(units_[0]);
  for (std::size_t i = 0; i < std::min(source.size(), kMaxSequence); ++i) {
    const auto byte = static_cast<std::uint8_t>(source[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    match = {i + 1, value(units_[node])};
  }
  return match;
}

Charsmap::Step Charsmap::step(std::string_view source) const {
  const Match match = longest_match(source);
  if (match.length > 0 && match.value < texts_.size()) {
    return {.text = texts_.c_str() + match.value, .length = match.length};
  }
  const Utf8Step character = utf8_step(source, 0);
  const bool is_character = character.kind == Utf8Step::Kind::kCharacter;
  return {.text = is_character ? source.substr(0, character.length) : kReplacement,
          .length = character.length};
}

}  // namespace brigade::model
