// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/tokenizer.h"

namespace brigade::testing {

/// A token for each byte, and three special ones.
class FakeTokenizer final : public model::Tokenizer {
 public:
  static constexpr std::int32_t kBos = 256;    ///< <s>
  static constexpr std::int32_t kStart = 257;  ///< <|im_start|>
  static constexpr std::int32_t kEnd = 258;    ///< <|im_end|>, which ends a generation

  explicit FakeTokenizer(bool add_bos = false, bool add_eos = false)
      : add_bos_(add_bos), add_eos_(add_eos) {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<char>(i);
  }

  void encode(std::string_view text, bool parse_special,
              std::vector<std::int32_t>& ids) const override {
    while (!text.empty()) {
      std::size_t used = 1;
      std::int32_t id = static_cast<unsigned char>(text.front());
      for (std::size_t i = 0; parse_special && i < kSpecial.size(); ++i) {
        if (!text.starts_with(kSpecial[i])) continue;
        used = kSpecial[i].size();
        id = kBos + static_cast<std::int32_t>(i);
      }
      ids.push_back(id);
      text.remove_prefix(used);
    }
  }
  [[nodiscard]] std::string_view token_bytes(std::int32_t id, bool special) const override {
    if (id >= 0 && id < kBos) return {&bytes_[static_cast<std::size_t>(id)], 1};
    if (special && is_special(id)) return kSpecial[static_cast<std::size_t>(id - kBos)];
    return {};
  }
  [[nodiscard]] std::int32_t vocab_size() const override { return kBos + 3; }
  [[nodiscard]] bool is_special(std::int32_t id) const override {
    return id >= kBos && id < vocab_size();
  }
  [[nodiscard]] std::optional<std::int32_t> find(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    encode(text, /*parse_special=*/true, ids);
    return ids.size() == 1 ? std::optional(ids.front()) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int32_t> bos_id() const override { return kBos; }
  [[nodiscard]] std::optional<std::int32_t> eos_id() const override { return kEnd; }
  [[nodiscard]] std::span<const std::int32_t> end_ids() const override { return kEnds; }
  [[nodiscard]] bool add_bos() const override { return add_bos_; }
  [[nodiscard]] bool add_eos() const override { return add_eos_; }

 private:
  static constexpr std::array<std::string_view, 3> kSpecial = {"<s>", "<|im_start|>", "<|im_end|>"};
  static constexpr std::array<std::int32_t, 1> kEnds = {kEnd};
  bool add_bos_;
  bool add_eos_;
  std::array<char, 256> bytes_{};
};

}  // namespace brigade::testing
