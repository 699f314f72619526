// SPDX-License-Identifier: Apache-2.0
//
// Distinguishes runs of `>` that close a kernel launch from those that close templates or shift: a
// step of tokenize().
#ifndef MC_LEX_LAUNCH_CLOSERS_H_
#define MC_LEX_LAUNCH_CLOSERS_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "lex/token.h"

namespace mc::lex {

// One number for each token: for the first `>` of a launch's `>>>` the index of its last `>`, 0 for
// all other tokens.  REQUIRES: every `>` is a separate token.
std::vector<std::size_t> launch_closers(std::string_view source, const std::vector<Token>& tokens);

}  // namespace mc::lex

#endif  // MC_LEX_LAUNCH_CLOSERS_H_
