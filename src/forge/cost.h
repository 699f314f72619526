// SPDX-License-Identifier: Apache-2.0
//
// Cost: what a template takes for a stage at the sizes of the task that is written, by the formulas
// in its manifest.  Solutions are drawn by it, and a plan compares it with what was rejected.
#ifndef MC_FORGE_COST_H_
#define MC_FORGE_COST_H_

#include <cstdint>
#include <map>
#include <string>

#include "forge/graph.h"
#include "forge/templates.h"

namespace mc::forge {

struct Cost {
  int64_t launches = 1;
  int64_t blocks = 0, threads = 0;  // The grid and a block of the first launch.
  int64_t busy = 0;                 // Threads of the grid that have work; 0: unknown.
  int64_t barriers = 0;             // Barriers that a block passes.
  int64_t shared = 0;               // Bytes of shared memory of a block.
  int64_t buffer = 0;               // Bytes between the launches of one template.
  int64_t reads = 0;  // How often each element of the tensor of read_whole() is loaded; 0: unknown.
  int64_t loaded = 0;   // Bytes that all threads load of it, or of both factors; 0: unknown.
  int64_t sectors = 0;  // Sectors of 32 bytes that a load of the first warp touches; 0: unknown.
  int64_t lanes = 0;    // Lanes of that load.
};
Cost cost_of(const Template& used, const TaskGraph& graph, const Stage& stage);

// The operand that is in memory and that each place of the stage's rows, or each element, loads at
// its own index; -1 where there is none.
int read_whole(const TaskGraph& graph, const Stage& stage);

// The formula `name` of the template with further names, such as "block" and "thread".
// REQUIRES: the template has it.
int64_t cost_at(const Template& used, const TaskGraph& graph, const Stage& stage,
                const std::string& name, const std::map<std::string, int64_t>& others);

// A bound of its time in bytes of traffic, to draw by.
double weight_of(const Cost& cost, int64_t bytes_of_stage);

}  // namespace mc::forge

#endif  // MC_FORGE_COST_H_
