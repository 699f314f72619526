// SPDX-License-Identifier: Apache-2.0
//
// Unit tests as data: small inputs of a task, and the outputs that it has for them.
//
// Outputs are the interpreter's, in double precision.  Inputs and parameters are multiples of 1/64,
// which every type of a task holds exactly, so an implementation is given what the interpreter had.
#ifndef MC_FORGE_UNIT_TESTS_H_
#define MC_FORGE_UNIT_TESTS_H_

#include <string>
#include <vector>

#include "forge/graph.h"

namespace mc::forge {

// The elements of a test, inputs, parameters and outputs together; a task with more has no tests.
inline constexpr int kTestElementsMax = 2048;

// A probe (interpret.h) for each kind of values, with "values" (the kind) and "tolerance": drawn,
// zeros, negative, one_large.  Those that leave the domain of an operator are left out.
std::vector<std::string> unit_tests_of(const TaskGraph& graph);

// A row of unit_tests.jsonl: {"task", "init", "tests": [test]}.
std::string unit_test_row(const TaskGraph& graph, const std::vector<std::string>& tests);

}  // namespace mc::forge

#endif  // MC_FORGE_UNIT_TESTS_H_
