// SPDX-License-Identifier: Apache-2.0
//
// Draws task graphs.  Each value is computed by the interpreter at small sizes as soon as it is
// drawn, and an operator that leaves its domain, changes nothing or makes all values alike is drawn
// again; after kDrawsMax draws the graph is given up.
#ifndef MC_FORGE_DRAW_H_
#define MC_FORGE_DRAW_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "forge/graph.h"

namespace mc::forge {

struct DrawOptions {
  std::set<std::string> families = {"elementwise", "reduction"};
  Style style = Style::kCompact;
  std::set<std::string> operators;  // Names that may be used; empty: all.
  int depth = 4;                    // Operators of a task, at most.
  Size size = Size::kSmall;
  double views_share = 0;  // The share of tasks with an input that is not contiguous.
  std::set<Type> types = {Type::kFloat32};  // Floats of all families but "integer".
};

// Task `number` of `seed`: always the same.  Empty where no valid graph was found.
std::optional<TaskGraph> draw_graph(const std::vector<Operator>& operators, uint64_t seed,
                                    uint64_t number, const DrawOptions& options);

}  // namespace mc::forge

#endif  // MC_FORGE_DRAW_H_
