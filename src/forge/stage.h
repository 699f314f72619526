// SPDX-License-Identifier: Apache-2.0
//
// Stages: how a graph is cut into kernels.  A stage computes one value that goes through memory: an
// operator with loops (its core), the pointwise operators after it, and those before it, which are
// computed where they are loaded.  A stage without a core is pointwise.
#ifndef MC_FORGE_STAGE_H_
#define MC_FORGE_STAGE_H_

#include <vector>

#include "forge/graph.h"

namespace mc::forge {

struct Stage {
  const Node* core = nullptr;      // Null where the stage is pointwise.
  int output = -1;                 // The value that is written.
  std::vector<const Node*> nodes;  // Pointwise ones that lead to the output, in order.
};

// In the order of the kernels.  The result points into the graph.
std::vector<Stage> stages_of(const TaskGraph& graph);

// The pointwise nodes above `value` down to values in memory and to those of nests, in order.
// `stop` is a value that is there already, or -1.
std::vector<const Node*> cone_of(const TaskGraph& graph, int value,
                                 const std::vector<int>& in_memory, int stop);

}  // namespace mc::forge

#endif  // MC_FORGE_STAGE_H_
