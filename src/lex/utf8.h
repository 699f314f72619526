// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as far as the lexer and the extraction need it: how long is the character here, if it is
// one at all.  Overlong forms, surrogates and code points above U+10FFFF are not characters.
#ifndef MC_LEX_UTF8_H_
#define MC_LEX_UTF8_H_

#include <cstddef>
#include <string_view>

namespace mc::lex {

// The number of bytes (1 to 4) of the character that starts at `offset`, or 0 if none does.
// REQUIRES: offset < text.size().
std::size_t utf8_length_at(std::string_view text, std::size_t offset);

// The offset of the first byte that is not part of a valid character; text.size() if all are.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace mc::lex

#endif  // MC_LEX_UTF8_H_
