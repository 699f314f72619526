// SPDX-License-Identifier: Apache-2.0
//
// What is told of a task and of a solution in words, rendered from the same graph as the code, so
// that text and code agree: tensor metadata (MusaCoder, section 3.2), and six steps of reasoning
// from the operators to the checks that the kernel needs.
#ifndef MC_FORGE_REASON_H_
#define MC_FORGE_REASON_H_

#include <string>

#include "forge/graph.h"
#include "forge/kernels.h"

namespace mc::forge {

// A Markdown table: a line for each tensor with shape, strides, dtype and where it comes from.
std::string metadata_table(const TaskGraph& graph);

// Six numbered paragraphs: decomposition, scalar mathematics, shapes, index mapping, boundaries and
// types, what would go wrong.  Phrasings vary with the task's seed.
std::string reasoning(const TaskGraph& graph, const Solution& solution,
                      const TemplateLibrary& library);

}  // namespace mc::forge

#endif  // MC_FORGE_REASON_H_
