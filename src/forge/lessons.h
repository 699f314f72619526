// SPDX-License-Identifier: Apache-2.0
//
// Questions: facts to be computed, such as a grid, an offset, an occupancy, sectors, banks, an
// extent or a bound, in sentences of the grammar (words.h).
#ifndef MC_FORGE_LESSONS_H_
#define MC_FORGE_LESSONS_H_

#include <cstdint>
#include <string>

namespace mc::forge {

struct Question {
  std::string topic;  // "grid", "banks", …
  std::string asked;
  std::string told;
};

// Question `number` of `seed`: always the same.
Question question_of(uint64_t seed, uint64_t number);

}  // namespace mc::forge

#endif  // MC_FORGE_LESSONS_H_
