// SPDX-License-Identifier: Apache-2.0
#include "common/model/utf8.h"

#include "common/model/tokenizer.h"

namespace brigade::model {
namespace {

/// The range of the second byte depends on the first (Unicode table 3-7); later bytes are 80..BF.
struct Lead {
  std::uint8_t length;  // 0: cannot start a character
  std::uint8_t second_min;
  std::uint8_t second_max;
};

Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t pos) {
  using Kind = Utf8Step::Kind;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[pos + i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length == 1) return {Kind::kCharacter, 1, byte(0)};
  if (lead.length == 0) return {Kind::kInvalid, 1, 0};
  char32_t code_point = byte(0) & (0x7fU >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (pos + i == text.size()) return {Kind::kIncomplete, i, 0};
    const std::uint8_t min = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t max = i == 1 ? lead.second_max : 0xbf;
    if (byte(i) < min || byte(i) > max) return {Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte(i) & 0x3fU);
  }
  return {Kind::kCharacter, lead.length, code_point};
}

void append_utf8(char32_t code_point, std::string& out) {
  const auto put = [&out](char32_t bits) { out += static_cast<char>(bits); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

std::size_t append_lossy_utf8(std::string_view bytes, bool final, std::string& out) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::size_t pos = 0;
  while (pos < bytes.size()) {
    const Utf8Step step = utf8_step(bytes, pos);
    if (step.kind == Utf8Step::Kind::kCharacter) {
      out += bytes.substr(pos, step.length);
    } else if (step.kind == Utf8Step::Kind::kIncomplete && !final) {
      break;
    } else {
      out += kReplacement;
    }
    pos += step.length;
  }
  return pos;
}

bool is_valid_utf8(std::string_view text) {
  std::size_t pos = 0;
  while (pos < text.size()) {
    const Utf8Step step = utf8_step(text, pos);
    if (step.kind != Utf8Step::Kind::kCharacter) return false;
    pos += step.length;
  }
  return true;
}

}  // namespace brigade::model
