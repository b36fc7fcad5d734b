// SPDX-License-Identifier: Apache-2.0
#include "common/model/sha256.h"

#include <sodium.h>

#include <array>

namespace brigade::model {
namespace {

void update(crypto_hash_sha256_state& state, std::span<const std::byte> bytes) {
  crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size());
}

}  // namespace

std::string sha256_hex(std::span<const std::byte> first, std::span<const std::byte> second) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  update(state, first);
  update(state, second);
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256_final(&state, hash.data());
  std::array<char, 2 * crypto_hash_sha256_BYTES + 1> hex{};
  sodium_bin2hex(hex.data(), hex.size(), hash.data(), hash.size());
  return hex.data();
}

}  // namespace brigade::model
