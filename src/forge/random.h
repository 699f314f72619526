// SPDX-License-Identifier: Apache-2.0
//
// Random: numbers determined by a seed and labels, from a counter (splitmix64, Steele et al. 2014).
//
//   Random random(seed, "graph", task_number);
//   const int depth = 1 + random.below(4);
//
// Streams with different labels are independent, so any task can be generated alone.
#ifndef MC_FORGE_RANDOM_H_
#define MC_FORGE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace mc::forge {

class Random {
 public:
  Random(uint64_t seed, std::string_view purpose, uint64_t number);

  uint64_t next();
  // A number from 0 to bound - 1.  REQUIRES: bound > 0.
  int below(int bound) { return static_cast<int>(next() % static_cast<uint64_t>(bound)); }
  // A number in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double p) { return unit() < p; }
  // REQUIRES: the container is not empty.
  template <typename Container>
  auto& pick(Container& items) {
    return items[next() % std::size(items)];
  }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace mc::forge

#endif  // MC_FORGE_RANDOM_H_
