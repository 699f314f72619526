// SPDX-License-Identifier: Apache-2.0
//
// Text: small tools for generated code.  A site is a marked part of a text where a fault can be
// planted: \x01 kind \x02 text \x03.  Sites may contain each other.
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
  size_t offset = 0;  // Characters before the site in the text without marks.
  size_t size = 0;
};

std::string site(std::string_view kind, std::string_view text);

// Removes the marks of `marked`; the sites are added to `sites`.
std::string without_marks(std::string_view marked, std::vector<Site>& sites);

// `text` with every `key` replaced.
std::string substituted(std::string text, std::string_view key, std::string_view value);

// True where `word` occurs in `text` as an identifier.
bool has_word(std::string_view text, std::string_view word);

// `text` with the identifier replaced.
std::string with_word(std::string_view text, std::string_view word, std::string_view value);

// `text` with each identifier that `names` has replaced, all at once; names of sites stay, and so
// do members ("threadIdx.x").
std::string renamed(std::string_view text, const std::map<std::string, std::string>& names);

// `text`, in parentheses where it is more than a word.
std::string parenthesized(const std::string& text);

// `stem` and the first number, from `number` on, whose name is not in `text`.
std::string unused_name(std::string_view text, std::string_view stem, int number);

// Every line of `text` behind so many blanks.
std::string indented(std::string_view text, size_t blanks);

std::string lower(std::string text);
std::string upper(std::string text);

// "2, 3".
std::string joined(const std::vector<int64_t>& numbers);

std::vector<std::string> words_of(std::string_view text);

}  // namespace mc::forge

#endif  // MC_FORGE_TEXT_H_
