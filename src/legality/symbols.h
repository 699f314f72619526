// SPDX-License-Identifier: Apache-2.0
//
// Rules on the undefined symbols of the compiled library.  Unlike the source, they cannot be
// disguised by macros or names; like all static rules they only save time.
#ifndef MC_LEGALITY_SYMBOLS_H_
#define MC_LEGALITY_SYMBOLS_H_

#include <string>
#include <string_view>
#include <vector>

#include "legality/policy.h"
#include "task/evidence.h"

namespace mc::legality {

struct NativeSource;

// Checks symbols.  `mangled` are the names from `nm -D --undefined-only`; a version
// ("dlopen@GLIBC_2.34") is ignored.  A finding about a PyTorch operator has the name that its
// author wrote and the location of its first call in `sources`, if there is one; other findings
// have no location.  At most kFindingsMax findings.
std::vector<task::RuleFinding> check_symbols(const Policy& policy,
                                             const std::vector<std::string>& mangled,
                                             const std::vector<NativeSource>& sources);

// True if all of `text` matches `pattern`: `*` stands for any text, [A-Z] for one such character.
bool matches_pattern(std::string_view text, std::string_view pattern);
bool matches_any(std::string_view text, const std::vector<std::string>& patterns);

}  // namespace mc::legality

#endif  // MC_LEGALITY_SYMBOLS_H_
