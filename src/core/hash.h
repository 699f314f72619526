// SPDX-License-Identifier: Apache-2.0
//
// Content hashes: BLAKE2b-256.  A cryptographic hash is necessary because candidates are hostile:
// with a collision, one candidate could replace another one in the artifact cache.
#ifndef MC_CORE_HASH_H_
#define MC_CORE_HASH_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace mc {

// 64 lower-case hexadecimal digits.  The parts are hashed with their lengths, so that
// {"ab", "c"} and {"a", "bc"} differ.
std::string content_hash(std::initializer_list<std::string_view> parts);

// A seed derived from `seed` and a label; each use of randomness has its own label.
uint64_t derive_seed(uint64_t seed, std::string_view label);

// The key that all seeds of a run are derived from.  Some of the seeds reveal neither the other
// seeds nor the key.
class SeedKey {
 public:
  // A key from 256 bits of the operating system's entropy.
  static SeedKey random();
  // The key for `number`, to repeat a run.  It is only as secret as the number.
  static SeedKey from(uint64_t number);

  // BLAKE2b under the key; parts as in content_hash.
  uint64_t derive(std::initializer_list<std::string_view> parts) const;

 private:
  explicit SeedKey(const std::array<unsigned char, 32>& bytes) : bytes_(bytes) {}
  std::array<unsigned char, 32> bytes_;
};

// 64 bits of the operating system's entropy.
uint64_t random_seed();

}  // namespace mc

#endif  // MC_CORE_HASH_H_
