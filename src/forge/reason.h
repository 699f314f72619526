// SPDX-License-Identifier: Apache-2.0
//
// Texts about a task and a solution, of the same graph and templates as the code: tensor metadata
// (MusaCoder, section 3.2), the plan of a solution with what was rejected and its cost, and the
// analysis of a right answer.  Each line is a sentence of the grammar (words.h);
// tools/text_truth.py reads them and decides by the code alone whether they hold.
#ifndef MC_FORGE_REASON_H_
#define MC_FORGE_REASON_H_

#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"

namespace mc::forge {

// A Markdown table: a line for each tensor with shape, strides, dtype and where it comes from.
std::string metadata_table(const TaskGraph& graph);

// The launches, the mathematics, and for each kernel how it divides the work, an example, the
// plan that was rejected with its cost, and the price of the one that was taken.
std::string plan_text(const TaskGraph& graph, const Solution& solution,
                      const TemplateLibrary& library);

// Sentences about the kernels of a solution that differ from those of `baseline`, and their costs
// beside it.  They describe all kernels where the solution is the baseline.
std::vector<std::string> variant_sentences(const TaskGraph& graph, const Solution& solution,
                                           const Solution& baseline);

// A reviewer's findings in a right answer: coverage, checks, barriers, offsets.
std::string analysis_text(const TaskGraph& graph, const Solution& solution);

// The operator's formula for people, with the node's literals in it.
std::string formula_text(const Node& node);

}  // namespace mc::forge

#endif  // MC_FORGE_REASON_H_
