// SPDX-License-Identifier: Apache-2.0
//
// An estimate of the number of tokens of a text, without any model's vocabulary.
#ifndef MC_REWARD_TOKENS_H_
#define MC_REWARD_TOKENS_H_

#include <cstddef>
#include <string_view>

namespace mc::reward {

// Overestimates the byte-pair tokenizers in use: each digit, punctuation mark, line break and byte
// beyond ASCII counts 1; letters count 1 for each three, rounded up; a run of spaces counts 1 only
// where it indents (elsewhere it joins the next word).  Additive at line breaks: the estimate of
// two lines is the sum of theirs.
size_t estimate_tokens(std::string_view text);

}  // namespace mc::reward

#endif  // MC_REWARD_TOKENS_H_
