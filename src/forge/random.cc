// SPDX-License-Identifier: Apache-2.0
#include "forge/random.h"

namespace mc::forge {
namespace {

uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Random::Random(uint64_t seed, std::string_view purpose, uint64_t number) : key_(mixed(seed)) {
  for (const char c : purpose) key_ = mixed(key_ ^ static_cast<unsigned char>(c));
  key_ = mixed(key_ ^ number);
}

uint64_t Random::next() { return mixed(key_ + 0x9E3779B97F4A7C15 * ++counter_); }

}  // namespace mc::forge
