// SPDX-License-Identifier: Apache-2.0
//
// Names: what a person would call the variables that templates name with one letter.
#ifndef MC_FORGE_NAMES_H_
#define MC_FORGE_NAMES_H_

#include <map>
#include <string>

#include "forge/graph.h"
#include "forge/stage.h"
#include "forge/templates.h"

namespace mc::forge {

// A name for each that `code`, the marked kernel, may have; for renamed() (text.h).  One that
// the code has already for something else is left out.
std::map<std::string, std::string> names_of(const TaskGraph& graph, const Stage& stage,
                                            const Template& used, const std::string& code);

}  // namespace mc::forge

#endif  // MC_FORGE_NAMES_H_
