// SPDX-License-Identifier: Apache-2.0
//
// Draws task graphs.  The interpreter computes each value at small sizes as soon as it is drawn.
// An operator that leaves its domain, changes nothing or makes all values equal is drawn again;
// after kDrawsMax draws the graph is discarded.
#ifndef MC_FORGE_SAMPLE_GRAPH_H_
#define MC_FORGE_SAMPLE_GRAPH_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "forge/graph.h"

namespace mc::forge {

struct GraphOptions {
  std::set<std::string> families = {"elementwise", "reduction"};
  Style style = Style::kCompact;
  std::set<std::string> operators;  // The names of the allowed operators; empty: all.
  int depth = 4;                    // The maximum number of operators in a task.
  Size size = Size::kSmall;
  double views_share = 0;                   // The share of tasks with a non-contiguous input.
  std::set<Type> types = {Type::kFloat32};  // The floating types of all families except "integer".
};

// The task `number` of `seed`; the result depends only on the arguments.  Empty if no valid graph
// was found.
std::optional<TaskGraph> sample_graph(const std::vector<Operator>& operators, uint64_t seed,
                                      uint64_t number, const GraphOptions& options);

}  // namespace mc::forge

#endif  // MC_FORGE_SAMPLE_GRAPH_H_
