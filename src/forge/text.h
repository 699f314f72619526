// SPDX-License-Identifier: Apache-2.0
//
// Text: small functions for generated code.  A site is a marked part of a text where a fault can be
// planted: \x01 kind \x02 text \x03.  Sites may be nested.
#ifndef MC_FORGE_TEXT_H_
#define MC_FORGE_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mc::forge {

struct Site {
  std::string kind;   // The name that faults in the manifests refer to.
  size_t offset = 0;  // The offset of the site in the text without marks.
  size_t size = 0;
};

std::string site(std::string_view kind, std::string_view text);

// Removes the marks from `marked`; appends the sites to `sites`.
std::string without_marks(std::string_view marked, std::vector<Site>& sites);

// `text` with every `key` replaced.
std::string substituted(std::string text, std::string_view key, std::string_view value);

// True if `word` occurs in `text` as an identifier.
bool has_word(std::string_view text, std::string_view word);

// `text` with the identifier replaced.
std::string with_word(std::string_view text, std::string_view word, std::string_view value);

// `text` with each identifier in `names` replaced, all at once; names of sites and of members
// ("threadIdx.x") are not replaced.
std::string renamed(std::string_view text, const std::map<std::string, std::string>& names);

// `text`, in parentheses if it is more than one word.
std::string parenthesized(const std::string& text);

// `stem` with the first number, from `number` on, such that the name does not occur in `text`.
std::string unused_name(std::string_view text, std::string_view stem, int number);

// `text` with each line indented by this many spaces.
std::string indented(std::string_view text, size_t blanks);

std::string lower(std::string text);
std::string upper(std::string text);

// "2, 3".
std::string joined(const std::vector<int64_t>& numbers);

std::vector<std::string> words_of(std::string_view text);

}  // namespace mc::forge

#endif  // MC_FORGE_TEXT_H_
