// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <array>
#include <cstring>

#include <sodium.h>

namespace mc {
namespace {

using Digest = std::array<unsigned char, 32>;

// The digest, keyed with `key` where that is not null.
Digest digest_of(std::initializer_list<std::string_view> parts, const Digest* key = nullptr) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key == nullptr ? nullptr : key->data(),
                          key == nullptr ? 0 : key->size(), sizeof(Digest));
  for (const std::string_view part : parts) {
    const uint64_t size = part.size();
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&size), sizeof size);
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()), size);
  }
  Digest digest;
  crypto_generichash_final(&state, digest.data(), digest.size());
  return digest;
}

uint64_t number_of(const Digest& digest) {
  uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof number);
  return number;
}

}  // namespace

std::string content_hash(std::initializer_list<std::string_view> parts) {
  const Digest digest = digest_of(parts);
  std::string hex(2 * digest.size() + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
  hex.pop_back();
  return hex;
}

uint64_t derive_seed(uint64_t seed, std::string_view label) {
  char bytes[sizeof seed];
  std::memcpy(bytes, &seed, sizeof seed);
  return number_of(digest_of({std::string_view(bytes, sizeof bytes), label}));
}

SeedKey SeedKey::random() {
  Digest bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return SeedKey(bytes);
}

SeedKey SeedKey::from(uint64_t number) {
  Digest bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  return SeedKey(bytes);
}

uint64_t SeedKey::derive(std::initializer_list<std::string_view> parts) const {
  return number_of(digest_of(parts, &bytes_));
}

uint64_t random_seed() {
  uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  return seed;
}

}  // namespace mc
