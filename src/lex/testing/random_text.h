// SPDX-License-Identifier: Apache-2.0
//
// Texts from a seed that resemble CUDA source and break its rules in many ways: for property tests
// of code that reads untrusted source.
#ifndef MC_LEX_TESTING_RANDOM_TEXT_H_
#define MC_LEX_TESTING_RANDOM_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace mc::lex {

// `num_pieces` fragments (keywords, brackets, unterminated literals, splices, odd bytes) in a
// random order.  The same seed gives the same text everywhere.
std::string random_text(std::uint64_t seed, std::size_t num_pieces);

}  // namespace mc::lex

#endif  // MC_LEX_TESTING_RANDOM_TEXT_H_
