// SPDX-License-Identifier: Apache-2.0
//
// Texts about a task and a solution, generated from the same graph and templates as the code:
// tensor metadata (MusaCoder, section 3.2), the plan of a solution with a rejected alternative and
// its cost, and the analysis of a correct answer.  Each line is a sentence of the grammar
// (words.h); lab/texts/text_truth.py reads the lines and checks them against the code alone.
#ifndef MC_FORGE_REASON_H_
#define MC_FORGE_REASON_H_

#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"

namespace mc::forge {

// A Markdown table: one row for each tensor, with its shape, strides, dtype and origin.
std::string metadata_table(const TaskGraph& graph);

// The launches and the mathematics.  For each kernel: the division of the work, an example, the
// rejected plan with its cost, and the disadvantage of the chosen plan.
std::string plan_text(const TaskGraph& graph, const Solution& solution,
                      const TemplateLibrary& library);

// Sentences about the kernels of a solution that differ from those of `baseline`, and their costs
// beside it.  They describe all kernels where the solution is the baseline.
std::vector<std::string> variant_sentences(const TaskGraph& graph, const Solution& solution,
                                           const Solution& baseline);

// A reviewer's findings in a right answer: coverage, checks, barriers, offsets.
std::string analysis_text(const TaskGraph& graph, const Solution& solution);

// The operator's formula as readers see it, with the node's literals.
std::string formula_text(const Node& node);

}  // namespace mc::forge

#endif  // MC_FORGE_REASON_H_
