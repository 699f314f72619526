// SPDX-License-Identifier: Apache-2.0
//
// The graph's meaning in double precision: a plain twin of the PyTorch module, to be compared with
// it (python/harness/forge/gate.py) at the sizes of Dim::probe.
#ifndef MC_FORGE_INTERPRET_H_
#define MC_FORGE_INTERPRET_H_

#include <functional>
#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/random.h"

namespace mc::forge {

// Integers are drawn from -kWholeMax to kWholeMax.
inline constexpr int kWholeMax = 99;

struct Array {
  std::vector<int> shape;
  std::vector<double> values;
};

// An input or parameter drawn by its Value::draw: normal ones from [-2, 2].
Array drawn_array(const TaskGraph& graph, const Value& value, Random& random);

// The output of `node`.  REQUIRES: `arrays` has an array for each of its operands.
Array interpret_node(const TaskGraph& graph, const Node& node, const std::vector<Array>& arrays);

// A change of an input or parameter that was drawn, before anything is computed.
using Change = std::function<void(const Value&, Array&)>;

// One array for each value of the graph, inputs and parameters drawn by the task's seed, the rest
// computed.
std::vector<Array> interpret(const TaskGraph& graph, const Change& change = {});

// {"sizes", "inputs", "parameters", "outputs"}: what python/harness/forge/gate.py compares with
// PyTorch.
std::string probe_json(const TaskGraph& graph, const Change& change = {});

}  // namespace mc::forge

#endif  // MC_FORGE_INTERPRET_H_
