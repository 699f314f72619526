// SPDX-License-Identifier: Apache-2.0
//
// The words of a source file, for rules that rename: names, numbers, strings, headers and
// punctuation, each with its place in the file.  White space and comments are left out, so no rule
// can change them.
//
// A file is one or more units.  A C++ file is one C++ unit.  A Python file is one Python unit, a
// Python unit for each expression in the braces of an f-string, and a C++ unit for each string
// literal that holds C++ source, also where the literal is written as adjacent pieces, or has
// escapes or braces: the offsets of its words are offsets in the Python file.
//
// A literal holds C++ if it has a marker, or if its value reaches an argument whose name ends in
// `_sources`: directly, or by variables, keyword arguments, operators, calls and results of
// functions.  Only names are followed, so a variable is the same one in all functions.
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
  std::string text;           // Strings and headers have their content here, without delimiters.
  std::size_t offset = 0;     // Offset of the first byte in the file.
  std::size_t size = 0;       // Bytes in the file, with delimiters.
  std::size_t content = 0;    // Offset of a string's content in the file.
  bool in_directive = false;  // True in a C++ preprocessor directive.
  bool is_editable = true;    // False for a word of two Python literals, or with a field in it.
  std::string python_prefix;  // The letters before a Python string's quotes.
  std::string keyword;        // The keyword argument whose value the Python word belongs to.
  std::string module;         // The module whose alias the Python word is, as in `import m as w`.
  std::size_t end() const { return offset + size; }
};

struct Unit {
  Language language = Language::kCpp;
  std::vector<Word> words;
  // The spelling of a double quote in the file: \" inside of a Python literal in double quotes.
  std::string quote = "\"";
};

// Marks by which a string literal of Python is known to hold C++.
using Markers = std::vector<std::string>;

// The C++ in the literals of a Python file: units of their own, or literals like all others.
enum class Embedded : std::uint8_t { kUnits, kLiterals };

// REQUIRES: text.size() <= lex::kSourceBytesMax.
std::vector<Unit> units_of(std::string_view text, Language language, const Markers& markers,
                           Embedded embedded = Embedded::kUnits);

// The words of Python text, each literal as one word.
std::vector<Word> python_words(std::string_view text);

// The names that the units define themselves: functions, variables, types and macros of C++;
// functions, classes, variables, parameters and imports of Python.  It is a guess from neighbouring
// words.
std::set<std::string, std::less<>> names_defined_in(const std::vector<Unit>& units);

}  // namespace mc::musify

#endif  // MC_MUSIFY_WORDS_H_
