// SPDX-License-Identifier: Apache-2.0
//
// The structure of an answer's kernels: the source without names, numbers, comments and layout.
// Answers with the same structure form one cluster.
#ifndef MC_LOOP_STRUCTURE_H_
#define MC_LOOP_STRUCTURE_H_

#include <string>
#include <string_view>

namespace mc::loop {

// The native source: the triple-quoted texts of the answer that contain a kernel, or the whole
// answer if there are none.
std::string native_source(std::string_view answer);

// The tokens of the source in order, without white space, comments and preprocessor lines.  A name
// that the source declares is replaced by its number in order of appearance; numbers and texts are
// replaced by placeholders.
std::string normalised_tokens(std::string_view source);

// The hash of the structure: content_hash of normalised_tokens(native_source(answer)).
std::string structure_of(std::string_view answer);

}  // namespace mc::loop

#endif  // MC_LOOP_STRUCTURE_H_
