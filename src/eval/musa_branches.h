// SPDX-License-Identifier: Apache-2.0
//
// Finds the branches of #if that no MUSA compiler reads: `#if 0`, the #else of `#ifdef __MUSACC__`,
// or code for another architecture.
//
// A condition is evaluated if it consists of `defined`, numbers, comparisons, !, && and ||.  Any
// other expression has no known value, and neither has a macro that the text defines itself; all
// branches of such an #if stay.
#ifndef MC_EVAL_MUSA_BRANCHES_H_
#define MC_EVAL_MUSA_BRANCHES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mc::eval {

// The values of the macros that are known in one pass of a compiler; nothing for a macro that is
// not defined.
using Macros = std::map<std::string_view, std::optional<int64_t>>;

// The source with blanks in place of branches that are dead in all passes; line breaks stay.
std::string without_dead_branches(std::string_view source, std::vector<Macros> passes);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_BRANCHES_H_
