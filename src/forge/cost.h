// SPDX-License-Identifier: Apache-2.0
//
// Cost: the estimated cost of a template for a stage, at the sizes of the task that is shown, by
// the formulas of its manifest.  Solutions are drawn by cost, and plans compare it with a rejected
// alternative.
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
  int64_t blocks = 0, threads = 0;  // The grid and the block size of the first launch.
  int64_t busy = 0;                 // The number of threads of the grid that have work; 0: unknown.
  int64_t barriers = 0;             // The number of barriers that a block executes.
  int64_t shared = 0;               // The bytes of shared memory of a block.
  int64_t buffer = 0;               // The bytes that pass between the launches of one template.
  // The number of loads of each element of the tensor of read_whole(); 0: unknown.
  int64_t reads = 0;
  // The bytes that all threads load from that tensor, or from both factors of a product; 0:
  // unknown.
  int64_t loaded = 0;
  // The number of 32-byte sectors that a load of the first warp touches; 0: unknown.
  int64_t sectors = 0;
  int64_t lanes = 0;  // The number of lanes in that load.
};
Cost cost_of(const Template& used, const TaskGraph& graph, const Stage& stage);

// The operand in memory of which each element is loaded at the index of the current element or row
// element; -1 if there is none.
int read_whole(const TaskGraph& graph, const Stage& stage);

// The value of the template's formula `name`, with additional names such as "block" and "thread".
// REQUIRES: the template has this formula.
int64_t cost_at(const Template& used, const TaskGraph& graph, const Stage& stage,
                const std::string& name, const std::map<std::string, int64_t>& others);

// A bound on the time, in bytes of traffic, used as the weight for drawing.
double weight_of(const Cost& cost, int64_t bytes_of_stage);

}  // namespace mc::forge

#endif  // MC_FORGE_COST_H_
