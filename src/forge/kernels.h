// SPDX-License-Identifier: Apache-2.0
//
// CUDA solutions of a task: each stage is computed by a template that fits it.  By construction a
// solution is correct for all sizes; it is still verified before it is used.
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

// The part of a solution that computes one stage.
struct Part {
  const Template* used = nullptr;
  Stage stage;
  // The lengths of the runs ("n", "m", "depth"), at the sizes for verification and at those shown.
  std::map<std::string, int64_t> sizes, shown_sizes;
  std::string kernel;  // The name of the kernel.
  // For each variable of the template, its name in full style.
  std::map<std::string, std::string> names;
};

struct Solution {
  std::string name;  // The names of the templates: "thread", "tile_16+row_warp".
  std::string cuda;
  std::string module;  // The answer: a Python module that contains `cuda` and ModelNew.
  std::vector<Site> sites;
  std::vector<size_t> part_of_site;  // For each site, the index of its part.
  std::vector<Part> parts;
};

inline constexpr size_t kSolutionsMax = 4;

// At most kSolutionsMax solutions.  In compact style the simplest comes first, then others in an
// order that the task's seed determines.  In full style each stage's template is drawn by its cost
// (cost.h), and few solutions are baselines.
std::vector<Solution> solutions_of(const TaskGraph& graph, const TemplateLibrary& library);

// The one with these templates for the kernels of stages_of(graph), in order.
// REQUIRES: each fits its stage.
Solution solution_with(const TaskGraph& graph, const std::vector<const Template*>& templates);

// All of a graph: one for each template that fits its last stage.
std::vector<Solution> all_solutions_of(const TaskGraph& graph, const TemplateLibrary& library);

// True if the template can express the stage.
bool fits(const Template& used, const TaskGraph& graph, const Stage& stage);

// The Python module around a CUDA text with one host function.
std::string answer_module(const TaskGraph& graph, std::string_view cuda);

// The host function's signature in a CUDA text, as in "torch::Tensor f(torch::Tensor x)", and its
// name "f".
std::string signature_of(std::string_view cuda);
std::string function_of(std::string_view cuda);

}  // namespace mc::forge

#endif  // MC_FORGE_KERNELS_H_
