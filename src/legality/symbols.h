// SPDX-License-Identifier: Apache-2.0
//
// Rules on what the compiled library asks of others: its undefined symbols.  Unlike the source,
// these cannot be disguised by macros or names; like all static rules they only save time.
#ifndef MC_LEGALITY_SYMBOLS_H_
#define MC_LEGALITY_SYMBOLS_H_

#include <string>
#include <string_view>
#include <vector>

#include "legality/policy.h"
#include "task/verdict.h"

namespace mc::legality {

struct NativeSource;

// `mangled` as `nm -D --undefined-only` names them; a version ("dlopen@GLIBC_2.34") is ignored.
// An operator of PyTorch is told as its author wrote it, at its first call in `sources`, if it is
// found there; other findings have no place.  At most kFindingsMax findings.
std::vector<task::RuleFinding> check_symbols(const Policy& policy,
                                             const std::vector<std::string>& mangled,
                                             const std::vector<NativeSource>& sources);

// True if all of `text` matches `pattern`: `*` stands for any text, [A-Z] for one such character.
bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace mc::legality

#endif  // MC_LEGALITY_SYMBOLS_H_
