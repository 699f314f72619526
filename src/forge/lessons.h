// SPDX-License-Identifier: Apache-2.0
//
// Questions with computed answers, for example about a grid, an offset, an occupancy, sectors,
// banks, an extent or a bound, written with the sentences of the grammar (words.h).
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

// The question `number` of `seed`; the result depends only on the arguments.
Question question_of(uint64_t seed, uint64_t number);

}  // namespace mc::forge

#endif  // MC_FORGE_LESSONS_H_
