// SPDX-License-Identifier: Apache-2.0
//
// Backward tasks: the output of the task is the gradient of a graph, by reverse-mode
// differentiation of the graph.
//
// The PyTorch module computes the gradient by torch.autograd.grad.  Kernels and interpreter compute
// it by the operators' gradients (Operator::gradients), which are nodes like all others.
#ifndef MC_FORGE_BACKWARD_H_
#define MC_FORGE_BACKWARD_H_

#include <string_view>
#include <vector>

#include "forge/draft.h"

namespace mc::forge {

// The family of tasks whose output is a gradient.
inline constexpr std::string_view kBackward = "backward";

// Replaces the result of the draft, which has one output, by gradients with respect to some of the
// inputs and parameters; the output's own gradient becomes a further input.  False if this gives no
// valid task, for example because a gradient does not depend on all inputs.
bool add_gradients(const std::vector<Operator>& operators, Draft& draft);

}  // namespace mc::forge

#endif  // MC_FORGE_BACKWARD_H_
