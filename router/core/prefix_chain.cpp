// SPDX-License-Identifier: Apache-2.0
#include "router/core/prefix_chain.h"

#include <sodium.h>

#include <cstring>

#include "common/base/check.h"
#include "common/wire/messages.h"

namespace brigade::router {
namespace {

static_assert(std::tuple_size_v<BlockHash> == crypto_generichash_BYTES);

class Hasher final {
 public:
  Hasher() {
    static const int ready = sodium_init();  // picks the fast code; 1 when it was done before
    INVARIANT(ready >= 0) << "libsodium cannot start";
    crypto_generichash_init(&state_, nullptr, 0, sizeof(BlockHash));
  }
  void add(const void* data, std::size_t size) {
    crypto_generichash_update(&state_, static_cast<const unsigned char*>(data), size);
  }
  /// With its length before it, so that two texts never run into one.
  void add_text(std::string_view text) {
    const std::uint64_t size = text.size();
    add(&size, sizeof(size));
    add(text.data(), text.size());
  }
  BlockHash finish() {
    BlockHash hash;
    crypto_generichash_final(&state_, hash.data(), hash.size());
    return hash;
  }

 private:
  crypto_generichash_state state_;
};

BlockHash hash_block(const BlockHash& parent, std::span<const std::int32_t> tokens) {
  constexpr std::size_t kTokenBytes = wire::kBlockSize * sizeof(std::int32_t);
  std::array<unsigned char, sizeof(BlockHash) + kTokenBytes> input;
  std::memcpy(input.data(), parent.data(), sizeof(BlockHash));
  std::memcpy(input.data() + sizeof(BlockHash), tokens.data(), kTokenBytes);
  BlockHash hash;
  crypto_generichash(hash.data(), hash.size(), input.data(), input.size(), nullptr, 0);
  return hash;
}

}  // namespace

PrefixChain::PrefixChain(const PrefixScope& scope) : enabled_(true) {
  Hasher hasher;
  hasher.add_text("prefix");
  hasher.add_text(scope.model_digest);
  hasher.add_text(scope.salt);
  root_ = hasher.finish();
}

PrefixChain::PrefixChain(std::uint64_t group) : enabled_(true) {
  Hasher hasher;
  hasher.add_text("group");
  hasher.add(&group, sizeof(group));
  root_ = hasher.finish();
}

void PrefixChain::extend(std::span<const std::int32_t> tokens) {
  if (!enabled_) return;
  while ((hashes_.size() + 1) * wire::kBlockSize <= tokens.size()) {
    const std::size_t begin = hashes_.size() * wire::kBlockSize;
    hashes_.push_back(hash_block(hashes_.empty() ? root_ : hashes_.back(),
                                 tokens.subspan(begin, wire::kBlockSize)));
  }
}

}  // namespace brigade::router
