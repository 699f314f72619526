// SPDX-License-Identifier: Apache-2.0
//
// UTF-8, read by utf8proc.  Overlong forms, surrogates and code points above U+10FFFF are not
// characters.
#ifndef MC_CORE_UTF8_H_
#define MC_CORE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mc {

struct Character {
  int32_t code = 0;
  size_t num_bytes = 0;  // 1 to 4, or 0 where the text begins with no character.
};

// REQUIRES: the text is not empty.
Character first_character(std::string_view text);

// The offset of the first byte that is not part of a character; text.size() if there is none.
size_t first_invalid_utf8(std::string_view text);

// The same JSON with U+FFFD in place of each lone surrogate.  JSON can escape one half of a UTF-16
// pair without the other, "\ud800"; such a half is not a character, and parsers reject the whole
// line.
std::string without_lone_surrogates(std::string_view json);

inline constexpr const char* kLoneSurrogate =
    "a lone surrogate, half of a UTF-16 pair, is in no text: remove it";

}  // namespace mc

#endif  // MC_CORE_UTF8_H_
