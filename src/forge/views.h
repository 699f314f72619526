// SPDX-License-Identifier: Apache-2.0
//
// Views: inputs that are not contiguous.  The module is given a contiguous tensor, as the judge
// makes every input, and forward begins with a view of it; the kernels are given the view.
#ifndef MC_FORGE_VIEWS_H_
#define MC_FORGE_VIEWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/interpret.h"

namespace mc::forge {

// "x.transpose(-2, -1)" of the base "x".
std::string view_text(View view, const std::string& base);

// The base's extents, by those of the view as texts.
std::vector<std::string> base_extents(View view, std::vector<std::string> extents);

// A base tensor that has the array as its view.
Array base_of(View view, const Array& array);

// The view's strides in elements.
std::vector<int64_t> strides_of(View view, const std::vector<int64_t>& sizes);

// Makes one input a view, if one can be.
void draw_view(TaskGraph& graph);

}  // namespace mc::forge

#endif  // MC_FORGE_VIEWS_H_
