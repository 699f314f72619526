// SPDX-License-Identifier: Apache-2.0
//
// The branches of #if that no compiler of MUSA reads: `#if 0`, the #else of `#ifdef __MUSACC__`, or
// what is for another architecture.
//
// Conditions are of `defined`, numbers, comparisons, !, && and || alone.  What else there is has no
// known value, and neither has a macro that the text defines itself: then all branches stay.
#ifndef MC_EVAL_MUSA_BRANCHES_H_
#define MC_EVAL_MUSA_BRANCHES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mc::eval {

// The macros that are known in one pass of a compiler: their values, or nothing for one that is not
// defined.
using Macros = std::map<std::string_view, std::optional<int64_t>>;

// The source with blanks for branches that are dead in all passes; line ends stay.
std::string without_dead_branches(std::string_view source, std::vector<Macros> passes);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_BRANCHES_H_
