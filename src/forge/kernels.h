// SPDX-License-Identifier: Apache-2.0
//
// CUDA solutions of a task by templates: one kernel fused over the whole chain, written in at least
// three ways.  Each is correct for all sizes by construction, and still only data once it ran.
//
// Where a bug can be planted, the writer notes the place: `Site` names what stands there.
#ifndef MC_FORGE_KERNELS_H_
#define MC_FORGE_KERNELS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "forge/graph.h"

namespace mc::forge {

struct Site {
  std::string kind;   // "guard", "sync", "identity", "operator", …: see mutate.cc.
  size_t offset = 0;  // In Solution::cuda.
  size_t size = 0;
};

struct Solution {
  std::string name;  // Of the template: "thread", "stride", "float4", "row_thread", …
  std::string cuda;
  std::string module;  // The answer: Python with `cuda` in it and ModelNew.
  std::vector<Site> sites;
};

// Every template that can express the graph, in a fixed order.
std::vector<Solution> solutions_of(const TaskGraph& graph);

// The Python module around a CUDA text, which defines f.
std::string answer_module(const TaskGraph& graph, std::string_view cuda);

}  // namespace mc::forge

#endif  // MC_FORGE_KERNELS_H_
