// SPDX-License-Identifier: Apache-2.0
//
// An estimate of how many tokens a text costs a language model, without any model's vocabulary.
#ifndef MC_REWARD_TOKENS_H_
#define MC_REWARD_TOKENS_H_

#include <cstddef>
#include <string_view>

namespace mc::reward {

// Errs on the high side of the byte-pair tokenizers in use: each digit, each punctuation mark, each
// line break and each byte past ASCII counts 1; letters count 1 for three begun; a run of spaces
// counts 1 only where it indents (elsewhere it joins the next word).
// Additive at line breaks: the estimate of two lines is the sum of theirs.
size_t estimate_tokens(std::string_view text);

}  // namespace mc::reward

#endif  // MC_REWARD_TOKENS_H_
