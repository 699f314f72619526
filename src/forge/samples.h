// SPDX-License-Identifier: Apache-2.0
//
// Rows of the data sets (docs/forge.md): what a model is asked and what it should answer.
#ifndef MC_FORGE_SAMPLES_H_
#define MC_FORGE_SAMPLES_H_

#include <string>

#include "forge/draw.h"
#include "forge/graph.h"
#include "forge/kernels.h"

namespace mc::forge {

enum class Split { kTrain, kTest };
const char* split_name(Split split);

// Of training and held-out structures: by the structure's hash alone.  What is one operator is
// always training, so that every operator is.
Split split_of(const TaskGraph& graph, double test_share);

// The user's message that asks for a kernel.
std::string generation_prompt(const TaskGraph& graph, Style style);

// "```python\n…```\n".
std::string fenced(const std::string& module);

// One line of JSON, without a line break: a row of sft.jsonl.
std::string generation_row(const TaskGraph& graph, Style style, const Solution& solution);

// A row of rl.jsonl or test.jsonl.
std::string prompt_row(const TaskGraph& graph, Style style, Split split, uint64_t index);

}  // namespace mc::forge

#endif  // MC_FORGE_SAMPLES_H_
