// SPDX-License-Identifier: Apache-2.0
//
// The words of a source file, for rules that rename: names, numbers, strings, headers and
// punctuation, each with its offset in the file.  White space and comments are left out, so no rule
// can change them.
//
// A file is one or more units.  A C++ file is one C++ unit.  A Python file is a Python unit, plus a
// Python unit for each expression in the braces of an f-string, plus a C++ unit for each string
// literal that contains C++ source.  The literal may consist of adjacent pieces and have escapes or
// braces: the offsets of its words always refer to the Python file.
//
// A literal counts as C++ if it contains a marker, or if its value reaches an argument whose name
// ends in `_sources`: directly, or through variables, keyword arguments, operators, calls and
// results of functions.  Scopes are ignored: a name counts as the same variable in all functions.
#ifndef MC_MUSIFY_WORDS_H_
#define MC_MUSIFY_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mc::musify {

enum class Language : std::uint8_t { kCpp, kPython };

struct Word {
  enum class Kind : std::uint8_t { kName, kNumber, kString, kHeader, kNewline, kOther };
  Kind kind = Kind::kOther;
  std::string text;           // The content; for strings and headers without delimiters.
  std::size_t offset = 0;     // Offset of the first byte in the file.
  std::size_t size = 0;       // The number of bytes in the file, with delimiters.
  std::size_t content = 0;    // The offset of a string's content in the file.
  bool in_directive = false;  // True in a C++ preprocessor directive.
  // False for a word that spans two Python literals, or contains a replacement field.
  bool is_editable = true;
  std::string python_prefix;  // The letters before a Python string's quotes.
  std::string keyword;        // Python: the keyword argument to whose value the word belongs.
  std::string module;  // Python: the module for which the word is an alias, as in `import m as w`.
  std::size_t end() const { return offset + size; }
};

// Tests of the word at index `i`; each is false beyond the last word, but for ends_line().
inline bool is_mark(const std::vector<Word>& words, std::size_t i, std::string_view text) {
  return i < words.size() && words[i].kind == Word::Kind::kOther && words[i].text == text;
}
inline bool is_name(const std::vector<Word>& words, std::size_t i, std::string_view text) {
  return i < words.size() && words[i].kind == Word::Kind::kName && words[i].text == text;
}
inline bool opens_bracket(const std::vector<Word>& words, std::size_t i) {
  return is_mark(words, i, "(") || is_mark(words, i, "[") || is_mark(words, i, "{");
}
inline bool closes_bracket(const std::vector<Word>& words, std::size_t i) {
  return is_mark(words, i, ")") || is_mark(words, i, "]") || is_mark(words, i, "}");
}
// True also for the end of the text.
inline bool ends_line(const std::vector<Word>& words, std::size_t i) {
  return i >= words.size() || words[i].kind == Word::Kind::kNewline;
}

struct Unit {
  Language language = Language::kCpp;
  std::vector<Word> words;
  // The spelling of a double quote in the file; \" inside a Python literal in double quotes.
  std::string quote = "\"";
};

// Marks that identify a Python string literal as C++.
using Markers = std::vector<std::string>;

// The treatment of C++ in Python literals: as separate units, or like all other literals.
enum class Embedded : std::uint8_t { kUnits, kLiterals };

// REQUIRES: text.size() <= lex::kSourceBytesMax.
std::vector<Unit> units_of(std::string_view text, Language language, const Markers& markers,
                           Embedded embedded = Embedded::kUnits);

// The words of Python text, each literal as one word.
std::vector<Word> python_words(std::string_view text);

// The names that the units define: functions, variables, types and macros of C++; functions,
// classes, variables, parameters and imports of Python.  The result is a guess from adjacent words.
std::set<std::string, std::less<>> names_defined_in(const std::vector<Unit>& units);

}  // namespace mc::musify

#endif  // MC_MUSIFY_WORDS_H_
