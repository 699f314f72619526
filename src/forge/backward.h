// SPDX-License-Identifier: Apache-2.0
//
// Backward tasks: a graph's gradient as the task's output, by reverse mode over the graph.
//
// The module computes it by torch.autograd.grad; kernels and interpreter compute it by the
// gradients of the operators (Operator::gradients), which are nodes like any others.
#ifndef MC_FORGE_BACKWARD_H_
#define MC_FORGE_BACKWARD_H_

#include <string_view>
#include <vector>

#include "forge/draft.h"

namespace mc::forge {

// The family of tasks whose output is a gradient.
inline constexpr std::string_view kBackward = "backward";

// Makes gradients of the draft's only output the results: by some of the inputs and parameters,
// with the output's own gradient as a further input.  False where no task comes of it, such as
// where a gradient does not depend on all inputs.
bool add_gradients(const std::vector<Operator>& operators, Draft& draft);

}  // namespace mc::forge

#endif  // MC_FORGE_BACKWARD_H_
