// SPDX-License-Identifier: Apache-2.0
//
// Stages: the division of a graph into kernels.  A stage computes one value that is written to
// memory.  It consists of an operator with loops (its core), the pointwise operators after it, and
// pointwise operators before it, which are computed where their results are loaded.  A pointwise
// stage has no core.
#ifndef MC_FORGE_STAGE_H_
#define MC_FORGE_STAGE_H_

#include <vector>

#include "forge/graph.h"

namespace mc::forge {

struct Stage {
  const Node* core = nullptr;      // Null for a pointwise stage.
  int output = -1;                 // The value that is written.
  std::vector<const Node*> nodes;  // The pointwise nodes that lead to the output, in order.
};

// The stages, in the order of their kernels.  They point into the graph.
std::vector<Stage> stages_of(const TaskGraph& graph);

// The pointwise nodes on which `value` depends, back to values in memory and to outputs of nests,
// in order. `stop` is a value that is already computed, or -1.
std::vector<const Node*> cone_of(const TaskGraph& graph, int value,
                                 const std::vector<int>& in_memory, int stop);

}  // namespace mc::forge

#endif  // MC_FORGE_STAGE_H_
