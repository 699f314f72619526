// SPDX-License-Identifier: Apache-2.0
//
// Texts about a task and a solution in words, rendered from the same graph as the code, so that
// text and code agree: tensor metadata (MusaCoder, section 3.2), and six steps of reasoning
// from the operators to the checks that the kernel needs.
#ifndef MC_FORGE_REASON_H_
#define MC_FORGE_REASON_H_

#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"

namespace mc::forge {

// A Markdown table: a line for each tensor with shape, strides, dtype and where it comes from.
std::string metadata_table(const TaskGraph& graph);

// Six numbered paragraphs: decomposition, scalar mathematics, shapes, index mapping, boundaries and
// types, what would go wrong.  Each line is a sentence of the grammar (words.h), so that every
// number can be parsed and compared with the graph.
std::string reasoning(const TaskGraph& graph, const Solution& solution,
                      const TemplateLibrary& library);

// The operator's formula for people, with the node's literals in it.
std::string formula_text(const Node& node);

// The name of a value in texts: "x", "weight", "t2" behind step 2, "output".
std::string value_name(const TaskGraph& graph, int value);

// Which thread computes what in a part's kernel, as half a sentence.
std::string mapping_of(const TaskGraph& graph, const Part& part);

// The kinds of bugs that the solution's sites offer and that compile, each once.
std::vector<std::string> traps_of(const TaskGraph& graph, const Solution& solution,
                                  const TemplateLibrary& library);

}  // namespace mc::forge

#endif  // MC_FORGE_REASON_H_
