// SPDX-License-Identifier: Apache-2.0
//
// Findings about a text that do not change it: constructs without a counterpart, names that were
// not ported, and code that depends on the width of a warp.
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

// Findings for words that a notice names, except words that the source defines; one finding for
// each notice and line.
std::vector<Finding> noticed(const Unit& unit, const std::vector<Notice>& notices,
                             const Names& defined, const Edits& edits);

// Names and headers of the source platform that no rule changed, except names that the source
// defines and files of the same run.
std::vector<Finding> remnants_of(const Unit& unit, const Rules& rules, const Names& defined,
                                 const Names& project_files, const Edits& edits);

// True if warps of the architecture have 128 threads.
bool has_wide_warps(std::string_view architecture);

// Code in a C++ unit that assumes warps of 32 threads.
std::vector<Finding> warp_hazards(const Unit& unit, const Edits& edits);

}  // namespace mc::musify

#endif  // MC_MUSIFY_NOTICES_H_
