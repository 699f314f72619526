// SPDX-License-Identifier: Apache-2.0
//
// Views: non-contiguous inputs.  The module receives a contiguous tensor, like every input that the
// judge creates, and forward begins with a view of it; the kernels receive the view.
#ifndef MC_FORGE_VIEWS_H_
#define MC_FORGE_VIEWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/interpret.h"

namespace mc::forge {

// The Python text of a view: "x.transpose(-2, -1)" for the base "x".
std::string view_text(View view, const std::string& base);

// The extents of the base tensor, from those of the view, as text.
std::vector<std::string> base_extents(View view, std::vector<std::string> extents);

// A base tensor of which the array is the view.
Array base_of(View view, const Array& array);

// The view's strides in elements.
std::vector<int64_t> strides_of(View view, const std::vector<int64_t>& sizes);

// Turns one input into a view, if possible.
void draw_view(TaskGraph& graph);

}  // namespace mc::forge

#endif  // MC_FORGE_VIEWS_H_
