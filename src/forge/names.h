// SPDX-License-Identifier: Apache-2.0
//
// Names: descriptive names for the variables that templates name with one letter.
#ifndef MC_FORGE_NAMES_H_
#define MC_FORGE_NAMES_H_

#include <map>
#include <string>

#include "forge/graph.h"
#include "forge/stage.h"
#include "forge/templates.h"

namespace mc::forge {

// A new name for each variable of `code`, the marked kernel; for renamed() (text.h).  A name that
// the code already uses is left out.
std::map<std::string, std::string> names_of(const TaskGraph& graph, const Stage& stage,
                                            const Template& used, const std::string& code);

}  // namespace mc::forge

#endif  // MC_FORGE_NAMES_H_
