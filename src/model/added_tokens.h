// SPDX-License-Identifier: Apache-2.0
//
// The added tokens of a tokenizer.json (special ones among them): texts that are one token wherever
// they stand, cut out before anything else looks at the text.
#ifndef MC_MODEL_ADDED_TOKENS_H_
#define MC_MODEL_ADDED_TOKENS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mc::model {

struct AddedToken {
  int32_t id = 0;
  std::string content;       // Not empty.
  bool single_word = false;  // Only where no letter, digit or "_" stands next to it.
  bool strip_left = false;   // White space before it belongs to it.
  bool strip_right = false;
};

// A part of the text: an added token, or (id < 0) text that holds none.
struct TextPart {
  int32_t id;
  std::string_view text;
};

// Cuts `text` from left to right; of several tokens that begin at one place the longest counts.
// No part without id is empty.
std::vector<TextPart> cut_added_tokens(const std::vector<AddedToken>& tokens,
                                       std::string_view text);

}  // namespace mc::model

#endif  // MC_MODEL_ADDED_TOKENS_H_
