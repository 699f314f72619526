// SPDX-License-Identifier: Apache-2.0
//
// The added tokens of a tokenizer.json, including the special ones: each is a text that is one
// token wherever it occurs.  Added tokens are cut out of the text before any other step.
#ifndef MC_MODEL_ADDED_TOKENS_H_
#define MC_MODEL_ADDED_TOKENS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mc::model {

struct AddedToken {
  int32_t id = 0;
  std::string content;  // Not empty.
  // The token matches only where neither neighbour is a letter, a digit or "_".
  bool single_word = false;
  bool strip_left = false;  // The token includes the white space before it.
  bool strip_right = false;
};

// A part of the text: an added token, or (id < 0) text that contains no added token.
struct TextPart {
  int32_t id;
  std::string_view text;
};

// Splits `text` from left to right.  If several tokens match at the same offset, the longest wins.
// Parts without an id are not empty.
std::vector<TextPart> cut_added_tokens(const std::vector<AddedToken>& tokens,
                                       std::string_view text);

}  // namespace mc::model

#endif  // MC_MODEL_ADDED_TOKENS_H_
