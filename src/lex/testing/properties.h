// SPDX-License-Identifier: Apache-2.0
//
// Properties that the lexer has for every text, for its fuzz target and property tests.
#ifndef MC_LEX_TESTING_PROPERTIES_H_
#define MC_LEX_TESTING_PROPERTIES_H_

#include <string_view>

namespace mc::lex {

// Aborts by MC_CHECK unless the tokens of `source` join to `source` with right positions, and its
// rewriting for the CPU has as many lines.
void check_properties(std::string_view source);

}  // namespace mc::lex

#endif  // MC_LEX_TESTING_PROPERTIES_H_
