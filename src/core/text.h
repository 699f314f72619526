// SPDX-License-Identifier: Apache-2.0
//
// Words and lines of text.
#ifndef MC_CORE_TEXT_H_
#define MC_CORE_TEXT_H_

#include <string_view>
#include <vector>

namespace mc {

// True for letters of ASCII, digits and the underscore.
bool is_word_byte(char c);

// True if `text` contains `word`, and not only as a part of a longer word.
bool contains_word(std::string_view text, std::string_view word);

// The text without these bytes at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r");

// The lines without their ends, "\n" or "\r\n".  The last line need not have an end.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace mc

#endif  // MC_CORE_TEXT_H_
