// SPDX-License-Identifier: Apache-2.0
#include "musify/words.h"

#include <algorithm>
#include <cctype>

#include "lex/token.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;
using Names = std::set<std::string, std::less<>>;

// Text as a compiler of C++ gets it, with the place in the file of each of its bytes.
struct Decoded {
  struct Place {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t literal = 0;
  };
  std::string text;
  std::vector<Place> places;

  void add(char c, Place place) {
    text += c;
    places.push_back(place);
  }
};

char escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    default:
      return c;
  }
}

// Adds the content of the Python literal.  Escapes other than those of single letters stay as they
// are, for they cannot be part of a name.
void decode(const Word& literal, std::size_t index, Decoded& decoded) {
  const bool is_raw = literal.python_prefix.find_first_of("rR") != std::string::npos;
  for (std::size_t i = 0; i < literal.text.size(); ++i) {
    const std::size_t begin = literal.content + i;
    const char c = literal.text[i];
    if (is_raw || c != '\\' || i + 1 == literal.text.size()) {
      decoded.add(c, {begin, begin + 1, index});
      continue;
    }
    const char next = literal.text[++i];
    if (next == '\n') continue;  // Python joins the lines.
    decoded.add(escaped(next), {begin, begin + 2, index});
  }
}

Decoded identity(std::string_view text) {
  Decoded decoded;
  decoded.text = text;
  decoded.places.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) decoded.places.push_back({i, i + 1, 0});
  return decoded;
}

Kind kind_of(lex::Kind kind) {
  switch (kind) {
    case lex::Kind::kIdentifier:
      return Kind::kName;
    case lex::Kind::kNumber:
      return Kind::kNumber;
    case lex::Kind::kString:
      return Kind::kString;
    case lex::Kind::kHeader:
      return Kind::kHeader;
    default:
      return Kind::kOther;
  }
}

// The bytes of a literal between its quotes.  Raw strings count as having none.
void set_content(Word& word, const Decoded& decoded, const lex::Token& token) {
  const std::string spelling = word.text;
  const std::size_t open = spelling.find_first_of("\"<");
  const bool is_whole =
      open != std::string::npos && spelling.size() >= open + 2 && spelling.find('R') >= open;
  word.text = is_whole ? spelling.substr(open + 1, spelling.size() - open - 2) : "";
  if (is_whole && !word.text.empty()) word.content = decoded.places[token.offset + open + 1].begin;
}

std::vector<Word> cpp_words(const Decoded& decoded) {
  std::vector<Word> words;
  for (const lex::Token& token : lex::tokenize(decoded.text)) {
    if (lex::is_trivia(token) || token.size == 0) continue;
    const Decoded::Place& first = decoded.places[token.offset];
    const Decoded::Place& last = decoded.places[token.offset + token.size - 1];
    Word word;
    word.kind = kind_of(token.kind);
    word.text = word.kind == Kind::kName ? lex::spelling_of(decoded.text, token)
                                         : std::string(lex::text_of(decoded.text, token));
    word.offset = first.begin;
    word.size = last.end - first.begin;
    word.in_directive = token.in_directive;
    word.is_editable = first.literal == last.literal;
    if (word.kind == Kind::kString || word.kind == Kind::kHeader) {
      set_content(word, decoded, token);
    }
    words.push_back(std::move(word));
  }
  return words;
}

bool holds_cpp(std::string_view text, const Markers& markers) {
  return std::ranges::any_of(markers, [&](const std::string& marker) {
    return text.find(marker) != std::string_view::npos;
  });
}

bool is_sources(std::string_view keyword) { return keyword.ends_with("_sources"); }

// Variables that are handed to load_inline as sources.
Names source_variables(const std::vector<Word>& words) {
  Names names;
  for (const Word& word : words) {
    if (word.kind == Kind::kName && is_sources(word.keyword)) names.insert(word.text);
  }
  return names;
}

// Adjacent literals, which Python joins: [begin, end).
struct Group {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Group> string_groups(const std::vector<Word>& words) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].kind != Kind::kString) continue;
    const std::size_t begin = i;
    while (i + 1 < words.size() && words[i + 1].kind == Kind::kString) ++i;
    groups.push_back({begin, i + 1});
  }
  return groups;
}

bool is_line_border(const std::vector<Word>& words, std::size_t i) {
  return i >= words.size() || words[i].kind == Kind::kNewline;
}

bool is_docstring(const std::vector<Word>& words, const Group& group) {
  return (group.begin == 0 || is_line_border(words, group.begin - 1)) &&
         is_line_border(words, group.end);
}

bool is_source(const std::vector<Word>& words, const Group& group, std::string_view text,
               const Markers& markers, const Names& variables) {
  if (holds_cpp(text, markers) || is_sources(words[group.begin].keyword)) return true;
  std::size_t i = group.begin;
  while (i > 0 && words[i - 1].text == "(") --i;
  const bool is_assigned = i > 1 && (words[i - 1].text == "=" || words[i - 1].text == "+=");
  return is_assigned && variables.contains(words[i - 2].text);
}

std::string quote_inside_of(std::string_view text, const Word& literal) {
  const std::string_view before = text.substr(0, literal.content);
  const bool is_triple = before.ends_with("\"\"\"");
  const bool is_raw = literal.python_prefix.find_first_of("rR") != std::string::npos;
  return before.ends_with('"') && !is_triple && !is_raw ? "\\\"" : "\"";
}

std::vector<Unit> python_units(std::string_view text, const Markers& markers) {
  std::vector<Word> words = python_words(text);
  const Names variables = source_variables(words);
  std::vector<Unit> units(1);
  units[0].language = Language::kPython;
  std::vector<bool> is_left_out(words.size());
  for (const Group& group : string_groups(words)) {
    Decoded decoded;
    for (std::size_t i = group.begin; i < group.end; ++i) decode(words[i], i, decoded);
    const bool is_comment = is_docstring(words, group);
    if (!is_comment && !is_source(words, group, decoded.text, markers, variables)) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) is_left_out[i] = true;
    if (is_comment) continue;
    units.push_back(
        {Language::kCpp, cpp_words(decoded), quote_inside_of(text, words[group.begin])});
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_left_out[i]) units[0].words.push_back(std::move(words[i]));
  }
  return units;
}

}  // namespace

std::vector<Unit> units_of(std::string_view text, Language language, const Markers& markers) {
  if (language == Language::kPython) return python_units(text, markers);
  std::vector<Unit> units(1);
  units[0].words = cpp_words(identity(text));
  return units;
}

}  // namespace mc::musify
