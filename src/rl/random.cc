// SPDX-License-Identifier: Apache-2.0
#include "rl/random.h"

#include <cstdint>

namespace mc::rl {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

double uniform(const DrawId& id) {
  const uint64_t x = mix(mix(mix(id.seed) + id.step) + id.slot);
  return static_cast<double>(x >> 11) * 0x1p-53;
}

}  // namespace mc::rl
