// SPDX-License-Identifier: Apache-2.0
//
// The graph's meaning in double precision: a plain twin of the PyTorch module, to be compared with
// it (harness/forge/gate.py) at the sizes of Dim::probe.
#ifndef MC_FORGE_INTERPRET_H_
#define MC_FORGE_INTERPRET_H_

#include <string>
#include <vector>

#include "forge/graph.h"

namespace mc::forge {

struct Array {
  std::vector<int> shape;
  std::vector<double> values;
};

// One array for each value of the graph, inputs and parameters drawn from [-2, 2] by the task's
// seed, the rest computed.
std::vector<Array> interpret(const TaskGraph& graph);

// {"sizes", "inputs", "parameters", "output"}: what harness/forge/gate.py compares with PyTorch.
std::string probe_json(const TaskGraph& graph);

}  // namespace mc::forge

#endif  // MC_FORGE_INTERPRET_H_
