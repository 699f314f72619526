// SPDX-License-Identifier: Apache-2.0
//
// The task as a KernelBench-format module: Model, get_inputs, get_init_inputs, sizes as module
// constants, and `require_general = True`.
#ifndef MC_FORGE_RENDER_H_
#define MC_FORGE_RENDER_H_

#include <string>

#include "forge/graph.h"

namespace mc::forge {

std::string render_module(const TaskGraph& graph, Size size);
// The module with the sizes of graph.shown.
std::string render_module(const TaskGraph& graph);

// The parts that Model and ModelNew share: the constructor's arguments for the sizes that it needs
// ("" if it needs none), and the lines that create the parameters.
struct Construction {
  std::string arguments;           // ", m, k"
  std::vector<std::string> sizes;  // The sizes that get_init_inputs returns: "M", "K".
  std::vector<std::string> lines;  // "self.s = nn.Parameter(torch.randn(m))"
};
// The layers to create: only those with parameters, or all that forward uses.
enum class Layers { kParametersOnly, kAll };
Construction construction_of(const TaskGraph& graph, Layers layers);

// "[N, M]".
std::string shape_text(const TaskGraph& graph, const Value& value);

}  // namespace mc::forge

#endif  // MC_FORGE_RENDER_H_
