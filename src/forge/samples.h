// SPDX-License-Identifier: Apache-2.0
//
// Rows of the data sets (docs/forge.md): the request to a model and the answer that it should give.
#ifndef MC_FORGE_SAMPLES_H_
#define MC_FORGE_SAMPLES_H_

#include <string>
#include <utility>
#include <vector>

#include "forge/graph.h"
#include "forge/kernels.h"
#include "forge/mutate.h"
#include "forge/sample_graph.h"
#include "forge/variants.h"
#include "task/verdict.h"

namespace mc::forge {

enum class Split { kTrain, kTest };
const char* split_name(Split split);

// An outcome in one line: "wrong: 3 of 640 elements are outside the tolerance".
std::string effect_of(const task::Outcome& outcome);

// The split of a task, which the hash of its structure determines.  A task of one operator is
// always for training, so that every operator occurs in training.
Split split_of(const TaskGraph& graph, double test_share);

// The user's message that requests a kernel.
std::string generation_prompt(const TaskGraph& graph, Style style);

// "```python\n…```\n".
std::string fenced(const std::string& module);

// A row of sft.jsonl, as one line of JSON without a line break.
std::string generation_row(const TaskGraph& graph, Style style, const Solution& solution,
                           const TemplateLibrary& library);

// A wrong answer that a model might give: bugs in a solution, with MooreEval's outcome.
struct Mutant {
  std::vector<Bug> bugs;
  std::string module;
  task::Outcome outcome = task::Infra{};
};

// A review: the user gives the task and an answer, and the assistant names the bugs, or answers
// that there is none if `mutant` is null.  In full style the line of each bug is quoted, and the
// whole fixed answer follows; for a correct answer there is an analysis instead.
std::string review_row(const TaskGraph& graph, Style style, const Solution& solution,
                       const Mutant* mutant);

// A conversation of two turns, or of three if there are two `mutants`: each wrong answer is
// followed by its feedback, and the last answer is the solution.  In full style an answer to
// feedback begins with a diagnosis.
std::string repair_row(const TaskGraph& graph, Style style, const Solution& solution,
                       const std::vector<const Mutant*>& mutants);

// A single turn: one message contains the task, the failed answer and its feedback (as in rl's
// replays), and the answer is the solution, in full style after a diagnosis.
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
