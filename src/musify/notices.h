// SPDX-License-Identifier: Apache-2.0
//
// Findings about a text that change nothing in it: constructs that have no counterpart, names that
// were left over, and code that depends on the width of a warp.
#ifndef MC_MUSIFY_NOTICES_H_
#define MC_MUSIFY_NOTICES_H_

#include <string>
#include <vector>

#include "musify/apply_rules.h"
#include "musify/edits.h"
#include "musify/port.h"
#include "musify/rules.h"
#include "musify/words.h"

namespace mc::musify {

// Words that any of the notices names, but for those that the source defines; one for each notice
// and line.
std::vector<Finding> noticed(const Unit& unit, const std::vector<Notice>& notices,
                             const Names& defined, const Edits& edits);

// Names and headers of the other side that no rule changed, but for names that the source defines
// and files of the same run.
std::vector<Finding> remnants_of(const Unit& unit, const Rules& rules, const Names& defined,
                                 const Names& project_files, const Edits& edits);

// True where warps of the architecture have 128 threads.
bool has_wide_warps(std::string_view architecture);

// Code of the C++ unit that takes a warp to have 32 threads.
std::vector<Finding> warp_hazards(const Unit& unit, const Edits& edits);

}  // namespace mc::musify

#endif  // MC_MUSIFY_NOTICES_H_
