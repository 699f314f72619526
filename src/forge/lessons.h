// SPDX-License-Identifier: Apache-2.0
//
// Lessons: samples beside solutions and bugs.  Their numbers are computed from the graph, from the
// compiler's report or from formulas, and written in sentences of the grammar (words.h).
//
// Performance: a right kernel, and an analysis of its traffic, intensity and technique.  Profile: a
// kernel with what ptxas reports, and what limits its occupancy.  Question: a fact to be computed,
// such as a grid, an offset, an occupancy, sectors, banks, an extent or a bound.
#ifndef MC_FORGE_LESSONS_H_
#define MC_FORGE_LESSONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"
#include "forge/launch.h"

namespace mc::forge {

// An analysis of a right solution, some lines for each kernel.
std::string performance_text(const TaskGraph& graph, const Solution& solution,
                             const TemplateLibrary& library);

// "" where a launch has no constant number of threads, or its kernels were not found.
std::string profile_text(const TaskGraph& graph, const Solution& solution,
                         const std::vector<Resources>& resources);

// The part of a compilation that the user is shown, a line for each kernel.
std::string resources_text(const std::vector<Resources>& resources);

struct Question {
  std::string topic;  // "grid", "banks", …
  std::string asked;
  std::string told;
};

// Question `number` of `seed`: always the same.
Question question_of(uint64_t seed, uint64_t number);

}  // namespace mc::forge

#endif  // MC_FORGE_LESSONS_H_
