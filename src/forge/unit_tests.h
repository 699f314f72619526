// SPDX-License-Identifier: Apache-2.0
//
// Unit tests as data: small inputs of a task with the expected outputs.
//
// Outputs are computed by the interpreter in double precision.  Inputs and parameters are multiples
// of 1/64, which every type of a task represents exactly, so an implementation receives the same
// values as the interpreter.
#ifndef MC_FORGE_UNIT_TESTS_H_
#define MC_FORGE_UNIT_TESTS_H_

#include <string>
#include <vector>

#include "forge/graph.h"

namespace mc::forge {

// The maximum number of elements of a test, over inputs, parameters and outputs; a task with more
// elements has no tests.
inline constexpr int kTestElementsMax = 2048;

// Probes (interpret.h) of several kinds, each with "values" (the kind) and "tolerance": drawn,
// zeros, negative, one_large.  A probe that leaves the domain of an operator is left out.
std::vector<std::string> unit_tests_of(const TaskGraph& graph);

// A row of unit_tests.jsonl: {"task", "init", "tests": [test]}.
std::string unit_test_row(const TaskGraph& graph, const std::vector<std::string>& tests);

}  // namespace mc::forge

#endif  // MC_FORGE_UNIT_TESTS_H_
