// SPDX-License-Identifier: Apache-2.0
#include "legality/python_text.h"

#include <algorithm>
#include <array>
#include <string>

namespace mc::legality {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

bool is_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string_view trim_left(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

std::string_view first_word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_word_byte(text[end])) ++end;
  return text.substr(0, end);
}

bool starts_with_triple(std::string_view text, char quote) {
  return text.size() >= 3 && text[0] == quote && text[1] == quote && text[2] == quote;
}

bool is_import(std::string_view line) {
  const std::string_view text = trim_left(line);
  return starts_with(text, "import ") ||
         (starts_with(text, "from ") && text.find(" import ") != std::string_view::npos);
}

// True for lines such as class ModelNew(...) or class ModelNew:, at any indentation, and for
// ModelNew = ... at the margin.
bool defines_model_new(std::string_view line) {
  constexpr std::string_view kName = "ModelNew";
  std::string_view text = trim_left(line);
  if (starts_with(text, "class ")) {
    text = trim_left(text.substr(6));
    if (first_word(text) != kName) return false;
    text = trim_left(text.substr(kName.size()));
    return starts_with(text, "(") || starts_with(text, ":");
  }
  if (first_word(line) != kName) return false;
  text = trim_left(line.substr(kName.size()));
  return starts_with(text, "=") && !starts_with(text, "==");
}

// An apostrophe inside a word (don't) does not open a string.
bool is_apostrophe(std::string_view line, std::size_t i) {
  return line[i] == '\'' && i > 0 && is_word_byte(line[i - 1]) && i + 1 < line.size() &&
         is_word_byte(line[i + 1]);
}

// The end of the string whose opening quote is at `i`; the line's end if the string is not closed.
std::size_t end_of_string(std::string_view line, std::size_t i) {
  const char quote = line[i++];
  while (i < line.size() && line[i] != quote) i += line[i] == '\\' ? 2 : 1;
  return std::min(i + 1, line.size());
}

// The line with string literals replaced by a quote, so that their words do not count.
std::string without_strings(std::string_view line) {
  std::string code;
  std::size_t i = 0;
  while (i < line.size() && line[i] != '#') {
    const bool opens = (line[i] == '"' || line[i] == '\'') && !is_apostrophe(line, i);
    code += line[i];
    i = opens ? end_of_string(line, i) : i + 1;
  }
  return code;
}

// True if two words that are not keywords are adjacent, which no Python statement has.
bool has_two_words_in_a_row(std::string_view code) {
  bool after_plain_word = false;
  std::size_t i = 0;
  while (i < code.size()) {
    const std::string_view word = first_word(code.substr(i));
    if (word.empty()) {
      after_plain_word = after_plain_word && (code[i] == ' ' || code[i] == '\t');
      ++i;
      continue;
    }
    const bool is_plain = !is_keyword(word) && !is_digit(word.front());
    if (after_plain_word && is_plain) return true;
    after_plain_word = is_plain;
    i += word.size();
  }
  return false;
}

bool is_label(std::string_view line) {
  const std::string_view word = first_word(line);
  const std::string_view rest = line.substr(word.size());
  return !word.empty() && !is_keyword(word) && starts_with(rest, ":") &&
         trim_left(rest.substr(1)).empty();
}

bool is_numbered_item(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && is_digit(line[end])) ++end;
  return end > 0 && (starts_with(line.substr(end), ". ") || starts_with(line.substr(end), ") "));
}

bool is_statement_start(std::string_view word) {
  return is_keyword(word) || word == "match" || word == "case" || word == "type";
}

}  // namespace

std::size_t StringTracker::read_code(std::string_view line, std::size_t i) {
  const char c = line[i];
  if (c == '#') return line.size();
  if (c != '"' && c != '\'') return i + 1;
  quote_ = c;
  is_triple_ = starts_with_triple(line.substr(i), c);
  return i + (is_triple_ ? 3 : 1);
}

std::size_t StringTracker::read_string(std::string_view line, std::size_t i) {
  if (line[i] == '\\') return i + 2;
  if (line[i] != quote_) return i + 1;
  if (is_triple_ && !starts_with_triple(line.substr(i), quote_)) return i + 1;
  quote_ = '\0';
  return i + (is_triple_ ? 3 : 1);
}

void StringTracker::read(std::string_view line) {
  std::size_t i = 0;
  while (i < line.size()) i = is_inside() ? read_string(line, i) : read_code(line, i);
  // A string in single quotes ends with its line, unless the line ends with a backslash.
  if (is_inside() && !is_triple_ && i == line.size()) quote_ = '\0';
}

PythonTraits traits_of(const std::vector<std::string_view>& lines) {
  PythonTraits traits;
  StringTracker strings;
  for (const std::string_view line : lines) {
    if (!strings.is_inside()) {
      traits.defines_model_new = traits.defines_model_new || defines_model_new(line);
      traits.has_import = traits.has_import || is_import(line);
    }
    strings.read(line);
  }
  traits.ends_inside_string = strings.is_inside();
  return traits;
}

bool starts_like_python(std::string_view line) {
  const std::string_view word = first_word(line);
  if (is_import(line) && word == first_word(trim_left(line))) return true;
  if (word == "class" || word == "def") return line.find_first_of("(:") != std::string_view::npos;
  const std::string_view body =
      starts_with(line, "r") || starts_with(line, "R") ? line.substr(1) : line;
  return starts_with(line, "@") || starts_with_triple(body, '"') || starts_with_triple(body, '\'');
}

bool is_prose(std::string_view line) {
  if (line.empty() || line.front() == ' ' || line.front() == '\t' || line.front() == '#') {
    return false;
  }
  if (is_label(line) || is_numbered_item(line)) return true;
  return !is_statement_start(first_word(line)) && has_two_words_in_a_row(without_strings(line));
}

}  // namespace mc::legality
