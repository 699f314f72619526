// SPDX-License-Identifier: Apache-2.0
//
// Static rules on the native sources of a candidate: by tokens, before anything is compiled.
//
// They only save time and name the line.  What they miss, the library's symbols (symbols.h) and the
// run itself show; so where a token is in doubt, it is legal.  Comments, strings, members of other
// objects, and functions, classes or macros that the sources define themselves are never findings,
// whatever they are called.
#ifndef MC_LEGALITY_STATIC_RULES_H_
#define MC_LEGALITY_STATIC_RULES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "legality/policy.h"
#include "task/verdict.h"

namespace mc::legality {

inline constexpr std::size_t kFindingsMax = 32;

struct NativeSource {
  std::string name;  // For the findings' places: "cuda_sources[0]".
  std::string text;
};

// Empty: legal as far as tokens tell.  Each rule names each word once, at its first place.  The
// sources are one program: what one defines, all may use.
std::vector<task::RuleFinding> check_sources(const Policy& policy,
                                             const std::vector<NativeSource>& sources);

}  // namespace mc::legality

#endif  // MC_LEGALITY_STATIC_RULES_H_
