// SPDX-License-Identifier: Apache-2.0
//
// Rows of the data sets (docs/forge.md): what a model is asked and what it should answer.
#ifndef MC_FORGE_SAMPLES_H_
#define MC_FORGE_SAMPLES_H_

#include <string>
#include <utility>
#include <vector>

#include "forge/draw.h"
#include "forge/graph.h"
#include "forge/kernels.h"
#include "forge/mutate.h"
#include "forge/variants.h"
#include "task/verdict.h"

namespace mc::forge {

enum class Split { kTrain, kTest };
const char* split_name(Split split);

// An outcome in one line: "wrong: 3 of 640 elements are outside the tolerance".
std::string effect_of(const task::Outcome& outcome);

// The hash of a task's structure decides whether it is for training or held out.  A task of one
// operator is always training, so that every operator is.
Split split_of(const TaskGraph& graph, double test_share);

// The user's message that asks for a kernel.
std::string generation_prompt(const TaskGraph& graph, Style style);

// "```python\n…```\n".
std::string fenced(const std::string& module);

// One line of JSON, without a line break: a row of sft.jsonl.
std::string generation_row(const TaskGraph& graph, Style style, const Solution& solution,
                           const TemplateLibrary& library);

// A wrong answer as a model may give it: bugs in a solution, and what MooreEval says of it.
struct Mutant {
  std::vector<Bug> bugs;
  std::string module;
  task::Outcome outcome = task::Infra{};
};

// The user names the task and an answer, the assistant the bugs, or that there is none where
// `mutant` is null.  In full style each bug has its line, and the whole fixed answer follows; of a
// right answer it is analysed what it covers.
std::string review_row(const TaskGraph& graph, Style style, const Solution& solution,
                       const Mutant* mutant);

// Two turns, or three where `mutants` has two: each answer is followed by its feedback, the last
// one is the solution.  In full style an answer to feedback begins with a diagnosis.
std::string repair_row(const TaskGraph& graph, Style style, const Solution& solution,
                       const std::vector<const Mutant*>& mutants);

// One turn: task, failed answer and feedback in one message, the solution (rl's replays), behind a
// diagnosis in full style.
std::string retry_row(const TaskGraph& graph, Style style, const Solution& solution,
                      const Mutant& mutant);

// One turn: the user asks for variants (variants.h), the assistant gives them as JSON alone.
std::string variants_row(const TaskGraph& graph,
                         const std::vector<std::pair<Role, const Solution*>>& solutions);

// A question with its answer, of no task.
std::string question_row(uint64_t seed, uint64_t number);

// A row of rl.jsonl or test.jsonl, in the dialect of CUDA.
std::string prompt_row(const TaskGraph& graph, Style style, Split split, uint64_t index);

}  // namespace mc::forge

#endif  // MC_FORGE_SAMPLES_H_
