// SPDX-License-Identifier: Apache-2.0
//
// The structure of an answer's kernels: what is left of two answers when names, numbers, comments
// and layout are taken away.  Answers of one structure are one cluster.
#ifndef MC_LOOP_STRUCTURE_H_
#define MC_LOOP_STRUCTURE_H_

#include <string>
#include <string_view>

namespace mc::loop {

// The native source: the triple-quoted texts of the answer that hold a kernel, or the whole answer
// where there are none.
std::string native_source(std::string_view answer);

// The tokens of the source in order, without white space, comments and preprocessor lines.  A name
// that the source declares is its number in order of appearance; numbers and texts are
// placeholders.
std::string normalised_tokens(std::string_view source);

// Identifies the structure: content_hash of normalised_tokens(native_source(answer)).
std::string structure_of(std::string_view answer);

}  // namespace mc::loop

#endif  // MC_LOOP_STRUCTURE_H_
