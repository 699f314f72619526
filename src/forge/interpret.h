// SPDX-License-Identifier: Apache-2.0
//
// An interpreter of graphs in double precision: a simple model of the PyTorch module, with which it
// is compared (python/harness/forge/gate.py) at the sizes of Dim::probe.
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

// A random array for an input or parameter, according to its Value::draw; normal values are limited
// to [-2, 2].
Array drawn_array(const TaskGraph& graph, const Value& value, Random& random);

// Computes the output of `node`.  REQUIRES: `arrays` has an array for each of its operands.
Array interpret_node(const TaskGraph& graph, const Node& node, const std::vector<Array>& arrays);

// A modification of a drawn input or parameter, before anything is computed.
using Change = std::function<void(const Value&, Array&)>;

// One array for each value of the graph: inputs and parameters drawn by the task's seed, the others
// computed.
std::vector<Array> interpret(const TaskGraph& graph, const Change& change = {});

// {"sizes", "inputs", "parameters", "outputs"}, which python/harness/forge/gate.py compares with
// PyTorch.
std::string probe_json(const TaskGraph& graph, const Change& change = {});

}  // namespace mc::forge

#endif  // MC_FORGE_INTERPRET_H_
