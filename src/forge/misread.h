// SPDX-License-Identifier: Apache-2.0
//
// Misreadings: kernels of another graph than the task's.  An operator is left out, replaced by one
// of the same form, or computed after the next one.  Small models fail in this way most of all:
// their kernels are sound, and compute something else.
#ifndef MC_FORGE_MISREAD_H_
#define MC_FORGE_MISREAD_H_

#include <optional>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"
#include "forge/mutate.h"
#include "forge/random.h"

namespace mc::forge {

// A misreading of the kind "missing_operation", "wrong_operation" or "operations_in_wrong_order",
// as one edit of the solution's CUDA text; its expected outcome is "wrong".  Its values differ from
// the task's by the interpreter, and are finite there.  Nothing where no draw gives one, such as
// for a graph of gradients.
std::optional<Bug> misreading_of(const TaskGraph& graph, const Solution& solution,
                                 const TemplateLibrary& library,
                                 const std::vector<Operator>& operators, Random& random);

}  // namespace mc::forge

#endif  // MC_FORGE_MISREAD_H_
