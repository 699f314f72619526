// SPDX-License-Identifier: Apache-2.0
//
// Random answers, and properties that hold for the extraction from any answer; for its fuzz target
// and its tests.
#ifndef MC_LEGALITY_TESTING_EXTRACT_PROPERTIES_H_
#define MC_LEGALITY_TESTING_EXTRACT_PROPERTIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mc::legality {

// `num_pieces` fragments of answers (fences, tags, code, prose, odd bytes), determined by the seed.
std::string random_answer(std::uint64_t seed, std::size_t num_pieces);

// Aborts by MC_CHECK unless the extraction from `answer` returns a reason, or a module that is
// UTF-8 without NUL, is within the limits, seems to define ModelNew and has only lines of the
// answer.
void check_extraction(std::string_view answer);

}  // namespace mc::legality

#endif  // MC_LEGALITY_TESTING_EXTRACT_PROPERTIES_H_
