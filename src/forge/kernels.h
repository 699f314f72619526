// SPDX-License-Identifier: Apache-2.0
//
// CUDA solutions of a task: each stage by a template that fits it.  A solution is correct for all
// sizes by construction, and still only data once it ran.
#ifndef MC_FORGE_KERNELS_H_
#define MC_FORGE_KERNELS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "forge/graph.h"
#include "forge/templates.h"
#include "forge/text.h"

namespace mc::forge {

// A stage's part of a solution.
struct Part {
  const Template* used = nullptr;
  Stage stage;
  // The counts of the runs, "n", "m", "depth", at the sizes that are verified, and at those shown.
  std::map<std::string, int64_t> sizes, shown_sizes;
  std::string kernel;  // The name of its kernel.
  // Names of variables in full style, by those in templates.
  std::map<std::string, std::string> names;
};

struct Solution {
  std::string name;  // The templates: "thread", "tile_16+row_warp".
  std::string cuda;
  std::string module;  // The answer: Python with `cuda` in it and ModelNew.
  std::vector<Site> sites;
  std::vector<size_t> part_of_site;  // For each site the part that it belongs to.
  std::vector<Part> parts;
};

inline constexpr size_t kSolutionsMax = 4;

// Up to kSolutionsMax solutions.  In compact style the plainest is the first, then come others as
// the task's seed has it.  In full style each stage's template is drawn by its cost (cost.h), and
// few are baselines.
std::vector<Solution> solutions_of(const TaskGraph& graph, const TemplateLibrary& library);

// The one with these templates for the kernels of stages_of(graph), in order.
// REQUIRES: each fits its stage.
Solution solution_with(const TaskGraph& graph, const std::vector<const Template*>& templates);

// All of a graph: one for each template that fits its last stage.
std::vector<Solution> all_solutions_of(const TaskGraph& graph, const TemplateLibrary& library);

// True where the template can express the stage.
bool fits(const Template& used, const TaskGraph& graph, const Stage& stage);

// The Python module around a CUDA text with one host function.
std::string answer_module(const TaskGraph& graph, std::string_view cuda);

// "torch::Tensor f(torch::Tensor x)" of a CUDA text, and "f" of that.
std::string signature_of(std::string_view cuda);
std::string function_of(std::string_view cuda);

}  // namespace mc::forge

#endif  // MC_FORGE_KERNELS_H_
