// SPDX-License-Identifier: Apache-2.0
//
// Operator mutations: kernels that compute another graph than the task's.  In that graph an
// operator is left out, replaced by one of the same form, or exchanged with the next one.  This is
// the most frequent failure of small models: their kernels are sound, but compute something else.
#ifndef MC_FORGE_OPERATOR_MUTATION_H_
#define MC_FORGE_OPERATOR_MUTATION_H_

#include <optional>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"
#include "forge/mutate.h"
#include "forge/random.h"

namespace mc::forge {

// An operator mutation of the kind "missing_operation", "wrong_operation" or
// "operations_in_wrong_order", as one edit of the solution's CUDA text; its expected outcome is
// "wrong".  In the interpreter, its values are finite and differ from the task's.  Empty if no draw
// gives one, for example for a graph of gradients.
std::optional<Bug> operator_mutation_of(const TaskGraph& graph, const Solution& solution,
                                        const TemplateLibrary& library,
                                        const std::vector<Operator>& operators, Random& random);

}  // namespace mc::forge

#endif  // MC_FORGE_OPERATOR_MUTATION_H_
