// SPDX-License-Identifier: Apache-2.0
//
// Content hashes: BLAKE2b-256, because candidates are hostile and a collision would let one stand
// in for another in the artifact cache.
#ifndef MC_CORE_HASH_H_
#define MC_CORE_HASH_H_

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

// 64 bits of the operating system's entropy.
uint64_t random_seed();

}  // namespace mc

#endif  // MC_CORE_HASH_H_
