// SPDX-License-Identifier: Apache-2.0
#include "musify/words.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "core/check.h"
#include "lex/token.h"
#include "musify/python_flow.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;
// Text as the C++ compiler receives it, with the offset in the file of each byte.
struct Decoded {
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t literal = 0;
  };
  std::string text;
  std::vector<Range> ranges;

  void add(char c, Range range) {
    text += c;
    ranges.push_back(range);
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

// The index of a replacement field instead of a literal.
constexpr std::size_t kField = static_cast<std::size_t>(-1);

// Appends the content of the Python literal.  Only escapes of a single letter are decoded; other
// escapes cannot be part of a name.  A field of an f-string, whose value is unknown, becomes a name
// of one letter.
void decode(const Word& literal, std::size_t index, Decoded& decoded) {
  const bool is_raw = literal.python_prefix.find_first_of("rR") != std::string::npos;
  const bool is_formatted = literal.python_prefix.find_first_of("fF") != std::string::npos;
  const std::vector<Field> fields = fields_of(literal);
  auto field = fields.begin();
  for (std::size_t i = 0; i < literal.text.size(); ++i) {
    const std::size_t begin = literal.content + i;
    const char c = literal.text[i];
    if (field != fields.end() && i == field->open) {
      decoded.add('_', {begin, literal.content + field->close, kField});
      i = field++->close - 1;
      continue;
    }
    const bool is_doubled = c == '{' || c == '}';
    if (is_formatted && is_doubled && i + 1 < literal.text.size() && literal.text[i + 1] == c) {
      decoded.add(c, {begin, begin + 2, index});
      ++i;
      continue;
    }
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
  decoded.ranges.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) decoded.ranges.push_back({i, i + 1, 0});
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

// Sets the range of a literal between its quotes.  A raw string counts as empty.
void set_content(Word& word, const Decoded& decoded, const lex::Token& token) {
  const std::string spelling = word.text;
  const std::size_t open = spelling.find_first_of("\"<");
  const bool is_whole =
      open != std::string::npos && spelling.size() >= open + 2 && spelling.find('R') >= open;
  word.text = is_whole ? spelling.substr(open + 1, spelling.size() - open - 2) : "";
  if (is_whole && !word.text.empty()) word.content = decoded.ranges[token.offset + open + 1].begin;
}

std::vector<Word> cpp_words(const Decoded& decoded) {
  MC_CHECK(decoded.ranges.size() == decoded.text.size());
  std::vector<Word> words;
  for (const lex::Token& token : lex::tokenize(decoded.text)) {
    if (lex::is_trivia(token) || token.size == 0) continue;
    const auto ranges = std::span(decoded.ranges).subspan(token.offset, token.size);
    const Decoded::Range& first = ranges.front();
    const Decoded::Range& last = ranges.back();
    Word word;
    word.kind = kind_of(token.kind);
    word.text = word.kind == Kind::kName ? lex::spelling_of(decoded.text, token)
                                         : std::string(lex::text_of(decoded.text, token));
    word.offset = first.begin;
    word.size = last.end - first.begin;
    word.in_directive = token.in_directive;
    word.is_editable = std::ranges::all_of(ranges, [&](const Decoded::Range& range) {
      return range.literal == first.literal && range.literal != kField;
    });
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

// A range [begin, end) of adjacent literals, which Python concatenates.
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

// True for `softmax.cu`, false for C++ source.
bool is_path(std::string_view text) {
  return text.find_first_of("./") != std::string_view::npos &&
         text.find_first_of(" \t\n;(){}<>:*&#,=") == std::string_view::npos;
}

std::string quote_inside_of(std::string_view text, const Word& literal) {
  const std::string_view before = text.substr(0, literal.content);
  const bool is_triple = before.ends_with("\"\"\"");
  const bool is_raw = literal.python_prefix.find_first_of("rR") != std::string::npos;
  return before.ends_with('"') && !is_triple && !is_raw ? "\\\"" : "\"";
}

// Adds a unit for each field of the f-string, including nested fields.
void add_fields(const Word& literal, std::vector<Unit>& units) {
  for (const Field& field : fields_of(literal)) {
    Unit unit{Language::kPython, words_of(literal, field), "\""};
    for (const Word& word : unit.words) add_fields(word, units);
    units.push_back(std::move(unit));
  }
}

std::vector<Unit> python_units(std::string_view text, const Markers& markers, Embedded embedded) {
  std::vector<Word> words = python_words(text);
  std::vector<bool> reaches(words.size());
  if (embedded == Embedded::kUnits) reaches = reaching_sources(words);
  std::vector<Unit> units(1);
  units[0].language = Language::kPython;
  std::vector<bool> is_left_out(words.size());
  for (const Group& group : string_groups(words)) {
    for (std::size_t i = group.begin; i < group.end; ++i) add_fields(words[i], units);
    const bool is_comment = is_docstring(words, group);
    Decoded decoded;
    if (!is_comment && embedded == Embedded::kLiterals) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) decode(words[i], i, decoded);
    const bool is_cpp =
        holds_cpp(decoded.text, markers) || (reaches[group.begin] && !is_path(decoded.text));
    if (!is_comment && !is_cpp) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) is_left_out[i] = true;
    if (is_comment) continue;
    units.push_back(
        {Language::kCpp, cpp_words(decoded), quote_inside_of(text, words[group.begin])});
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_left_out[i]) units[0].words.push_back(std::move(words[i]));
  }
  set_modules(units);
  return units;
}

}  // namespace

std::vector<Unit> units_of(std::string_view text, Language language, const Markers& markers,
                           Embedded embedded) {
  if (language == Language::kPython) return python_units(text, markers, embedded);
  std::vector<Unit> units(1);
  units[0].words = cpp_words(identity(text));
  return units;
}

}  // namespace mc::musify
