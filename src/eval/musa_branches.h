// SPDX-License-Identifier: Apache-2.0
//
// The branches of #if that no compiler of MUSA reads: `#if 0`, or the #else of `#ifdef __MUSACC__`.
//
// Conditions are of `defined`, numbers, !, && and || alone.  What else there is has no known value,
// and neither has a macro that the text defines itself: then all branches stay.
#ifndef MC_EVAL_MUSA_BRANCHES_H_
#define MC_EVAL_MUSA_BRANCHES_H_

#include <set>
#include <string>
#include <string_view>

namespace mc::eval {

// The source with blanks for dead branches; line ends stay.  `macros` are defined, and about all
// others nothing is known.
std::string without_dead_branches(std::string_view source,
                                  const std::set<std::string_view>& macros);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_BRANCHES_H_
