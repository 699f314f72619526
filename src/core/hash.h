// SPDX-License-Identifier: Apache-2.0
//
// Content hashes: BLAKE2b-256, because candidates are hostile and a collision would let one stand
// in for another in the artifact cache.
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

// A number that `seed` and the labels determine, for seeding one use of randomness each.
uint64_t derive_seed(uint64_t seed, std::string_view label);

// The origin of all seeds of a run.  Nobody who knows some of the seeds can tell another one, nor
// the key.
class SeedKey {
 public:
  // 256 bits of the operating system's entropy.
  static SeedKey random();
  // The same for the same number: to repeat a run.  As secret as the number is.
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
