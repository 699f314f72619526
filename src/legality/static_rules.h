// SPDX-License-Identifier: Apache-2.0
//
// Static rules on the native sources of a candidate, checked by tokens before compilation.
//
// They only save time and locate the line.  The library's symbols (symbols.h) and the run itself
// show what they miss; so a doubtful token is legal.  Comments, strings, members of other objects,
// and functions, classes or macros that the sources define themselves are never findings, whatever
// their names are.
#ifndef MC_LEGALITY_STATIC_RULES_H_
#define MC_LEGALITY_STATIC_RULES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "legality/policy.h"
#include "task/evidence.h"

namespace mc::legality {

inline constexpr std::size_t kFindingsMax = 32;

struct NativeSource {
  std::string name;  // The source in the findings' locations: "cuda_sources[0]".
  std::string text;
};

// The findings; empty where the tokens are legal.  Each rule reports each word once, at its first
// location.  The sources are one program: a definition in one source is valid in all.
std::vector<task::RuleFinding> check_sources(const Policy& policy,
                                             const std::vector<NativeSource>& sources);

}  // namespace mc::legality

#endif  // MC_LEGALITY_STATIC_RULES_H_
