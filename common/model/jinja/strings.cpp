// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/strings.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

constexpr std::size_t kNone = std::string::npos;

/// Start of the character that ends before `end`.
std::size_t previous_character(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) {
    --begin;
  }
  const Utf8Step step = utf8_step(text, begin);
  return begin + step.length == end ? begin : end - 1;
}

bool strippable(std::string_view text, std::size_t begin, std::size_t end, const Text* characters) {
  if (characters != nullptr) {
    return find_bytes(characters->str(), text.substr(begin, end - begin), 0) != kNone;
  }
  return is_space(utf8_step(text, begin).code_point);
}

bool is_cased(char32_t code_point) {
  return to_upper(code_point) != code_point || to_lower(code_point) != code_point;
}

bool starts_word_after(char32_t code_point) {
  return is_space(code_point) ||
         (code_point < 0x80 && std::strchr("-({[<", static_cast<int>(code_point)) != nullptr);
}

std::vector<Value> split_spaces(Budget& budget, const Text& text, std::int64_t max_splits) {
  const std::string& bytes = text.str();
  std::vector<Value> parts;
  std::size_t pos = 0;
  const auto skip = [&](bool spaces) {
    while (pos < bytes.size()) {
      const Utf8Step step = utf8_step(bytes, pos);
      if (is_space(step.code_point) != spaces) break;
      pos += step.length;
    }
  };
  while (true) {
    skip(/*spaces=*/true);
    if (pos == bytes.size()) return parts;
    budget.bytes(sizeof(Value) + sizeof(Text));
    const std::size_t begin = pos;
    if (static_cast<std::int64_t>(parts.size()) == max_splits) {
      parts.emplace_back(strip(budget, text.slice(begin, bytes.size()), nullptr, false, true));
      return parts;
    }
    skip(/*spaces=*/false);
    parts.emplace_back(text.slice(begin, pos));
  }
}

std::vector<Value> rsplit_spaces(Budget& budget, const Text& text, std::int64_t max_splits) {
  const std::string& bytes = text.str();
  std::vector<Value> parts;
  std::size_t end = bytes.size();
  const auto skip = [&](bool spaces) {
    while (end > 0) {
      const std::size_t begin = previous_character(bytes, end);
      if (is_space(utf8_step(bytes, begin).code_point) != spaces) break;
      end = begin;
    }
  };
  while (true) {
    skip(/*spaces=*/true);
    if (end == 0) break;
    budget.bytes(sizeof(Value) + sizeof(Text));
    const std::size_t stop = end;
    if (static_cast<std::int64_t>(parts.size()) == max_splits) {
      parts.emplace_back(strip(budget, text.slice(0, stop), nullptr, true, false));
      break;
    }
    skip(/*spaces=*/false);
    parts.emplace_back(text.slice(end, stop));
  }
  return {parts.rbegin(), parts.rend()};
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

namespace {

/// Alternating capitals and small letters: capitals at even code points, or at odd ones.
bool pairs_from_even(char32_t c) {
  return (c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131) || (c >= 0x14a && c <= 0x177) ||
         (c >= 0x460 && c <= 0x481) || (c >= 0x48a && c <= 0x4bf) || (c >= 0x4d0 && c <= 0x52f) ||
         (c >= 0x1e00 && c <= 0x1e95) || (c >= 0x1ea0 && c <= 0x1eff);
}
bool pairs_from_odd(char32_t c) {
  return (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
}

}  // namespace

char32_t to_upper(char32_t c) {
  if (c >= 'a' && c <= 'z') return c - 32;
  if (c < 0xb5) return c;
  if (c == 0xb5) return 0x39c;
  if (c == 0xff) return 0x178;
  if (c >= 0xe0 && c <= 0xfe && c != 0xf7) return c - 32;
  if (pairs_from_even(c)) return c & ~1U;
  if (pairs_from_odd(c)) return (c & 1) == 0 ? c - 1 : c;
  if (c == 0x3c2) return 0x3a3;
  if (c >= 0x3b1 && c <= 0x3cb) return c - 32;
  if (c >= 0x430 && c <= 0x44f) return c - 32;
  if (c >= 0x450 && c <= 0x45f) return c - 80;
  return c;
}

char32_t to_lower(char32_t c) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if (c < 0xc0) return c;
  if (c == 0x178) return 0xff;
  if (c >= 0xc0 && c <= 0xde && c != 0xd7) return c + 32;
  if (pairs_from_even(c)) return c | 1U;
  if (pairs_from_odd(c)) return (c & 1) == 1 ? c + 1 : c;
  if (c >= 0x391 && c <= 0x3ab && c != 0x3a2) return c + 32;
  if (c >= 0x410 && c <= 0x42f) return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  return c;
}

std::size_t find_bytes(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) return kNone;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return needle.empty() ? from : kNone;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t pos = 0; pos < text.size(); pos += utf8_step(text, pos).length)
    ++count;
  return count;
}

std::vector<std::size_t> character_offsets(Budget& budget, std::string_view text) {
  budget.bytes(text.size() * sizeof(std::size_t));
  std::vector<std::size_t> offsets;
  for (std::size_t pos = 0; pos < text.size(); pos += utf8_step(text, pos).length) {
    offsets.push_back(pos);
  }
  offsets.push_back(text.size());
  return offsets;
}

Text strip(Budget& budget, const Text& text, const Text* characters, bool left, bool right) {
  const std::string& bytes = text.str();
  budget.bytes(bytes.size());
  if (characters != nullptr) {
    std::size_t cost = 0;
    if (__builtin_mul_overflow(bytes.size(), characters->size(), &cost)) cost = kNone;
    budget.step(cost / 64);
  }
  std::size_t begin = 0;
  std::size_t end = bytes.size();
  while (left && begin < end) {
    const std::size_t next = begin + utf8_step(bytes, begin).length;
    if (!strippable(bytes, begin, next, characters)) break;
    begin = next;
  }
  while (right && begin < end) {
    const std::size_t previous = previous_character(bytes, end);
    if (!strippable(bytes, previous, end, characters)) break;
    end = previous;
  }
  return text.slice(begin, end);
}

Text map_case(Budget& budget, const Text& text, CaseRule rule) {
  const std::string& bytes = text.str();
  budget.bytes(bytes.size() * 2);
  Text out;
  bool word_start = true;
  for (std::size_t pos = 0; pos < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, pos);
    std::string mapped = bytes.substr(pos, step.length);
    if (step.kind == Utf8Step::Kind::kCharacter) {
      const char32_t c = step.code_point;
      const bool upper = rule == CaseRule::kUpper || (rule != CaseRule::kLower && word_start);
      mapped.clear();
      append_utf8(upper ? to_upper(c) : to_lower(c), mapped);
      word_start = (rule == CaseRule::kTitle && !is_cased(c)) ||
                   (rule == CaseRule::kTitleFilter && starts_word_after(c));
    }
    out.append(mapped, text.trusted_at(pos));
    pos += step.length;
  }
  return out;
}

Text justify(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Justify how) {
  budget.bytes(text.size());
  const auto size = static_cast<std::int64_t>(count_characters(text.str()));
  const std::int64_t missing = std::max<std::int64_t>(0, width - size);
  std::int64_t left = how == Justify::kRight ? missing : 0;
  if (how == Justify::kCenter) left = missing / 2 + (missing & width & 1);  // as CPython does
  budget.step(static_cast<std::size_t>(missing));
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(missing), fill.size(), &bytes)) bytes = kNone;
  budget.bytes(bytes);
  Text out;
  for (std::int64_t i = 0; i < left; ++i)
    out.append(fill);
  out.append(text);
  for (std::int64_t i = left; i < missing; ++i)
    out.append(fill);
  return out;
}

Text replace(Budget& budget, const Text& text, const Text& from, const Text& to,
             std::int64_t max_replacements) {
  const std::string& bytes = text.str();
  budget.bytes(bytes.size());
  Text out;
  std::size_t done = 0;  // copied up to here
  std::size_t pos = 0;
  for (std::int64_t count = 0; count != max_replacements; ++count) {
    const std::size_t found = find_bytes(bytes, from.str(), pos);
    if (found == kNone) break;
    budget.step();
    budget.bytes(to.size());
    out.append(text, done, found);
    out.append(to);
    done = found + from.size();
    if (!from.empty()) {
      pos = done;
      continue;
    }
    if (found == bytes.size()) break;
    pos = found + utf8_step(bytes, found).length;
  }
  out.append(text, done, bytes.size());
  return out;
}

std::vector<Value> split(Budget& budget, const Text& text, const Text* separator,
                         std::int64_t max_splits, bool from_right) {
  budget.bytes(text.size());
  if (separator == nullptr) {
    return from_right ? rsplit_spaces(budget, text, max_splits)
                      : split_spaces(budget, text, max_splits);
  }
  if (separator->empty()) fail("empty separator");
  const std::string& bytes = text.str();
  std::vector<Value> parts;
  const auto limit_reached = [&] {
    budget.bytes(sizeof(Value) + sizeof(Text));
    return static_cast<std::int64_t>(parts.size()) == max_splits;
  };
  if (from_right) {
    std::size_t end = bytes.size();
    while (!limit_reached() && end >= separator->size()) {
      // rfind compares at every place: for a long separator the worst case is paid in advance.
      if (separator->size() > 64) budget.step(separator->size() * end / 64);
      const std::size_t found = bytes.rfind(separator->str(), end - separator->size());
      budget.step((end - (found == kNone ? 0 : found)) / 8);
      if (found == kNone) break;
      parts.emplace_back(text.slice(found + separator->size(), end));
      end = found;
    }
    parts.emplace_back(text.slice(0, end));
    return {parts.rbegin(), parts.rend()};
  }
  std::size_t begin = 0;
  while (!limit_reached()) {
    const std::size_t found = find_bytes(bytes, separator->str(), begin);
    if (found == kNone) break;
    parts.emplace_back(text.slice(begin, found));
    begin = found + separator->size();
  }
  parts.emplace_back(text.slice(begin, bytes.size()));
  return parts;
}

std::vector<Text> split_lines(Budget& budget, const Text& text, bool keep_ends) {
  const std::string& bytes = text.str();
  budget.bytes(bytes.size());
  std::vector<Text> lines;
  for (std::size_t begin = 0; begin < bytes.size();) {
    budget.bytes(sizeof(Value) + sizeof(Text));
    std::size_t end = bytes.find_first_of("\r\n", begin);
    std::size_t next = bytes.size();
    if (end == kNone) {
      end = bytes.size();
    } else {
      next = bytes.compare(end, 2, "\r\n") == 0 ? end + 2 : end + 1;
    }
    lines.push_back(text.slice(begin, keep_ends ? next : end));
    begin = next;
  }
  return lines;
}

}  // namespace brigade::model::jinja
