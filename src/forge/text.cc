// SPDX-License-Identifier: Apache-2.0
#include "forge/text.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"

namespace mc::forge {
namespace {

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

size_t find_word(std::string_view text, std::string_view word, size_t from) {
  for (size_t at = from; (at = text.find(word, at)) != std::string_view::npos; ++at) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || (!is_letter(text[at - 1]) && text[at - 1] != '.');
    if (begins && (end == text.size() || !is_letter(text[end]))) return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::string site(std::string_view kind, std::string_view text) {
  std::string marked = "\x01";
  marked.append(kind).append("\x02").append(text).append("\x03");
  return marked;
}

std::string without_marks(std::string_view marked, std::vector<Site>& sites) {
  std::string text;
  std::vector<size_t> open;
  for (size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] == '\x01') {
      const size_t end = marked.find('\x02', i);
      MC_CHECK(end != std::string_view::npos);
      sites.push_back({std::string(marked.substr(i + 1, end - i - 1)), text.size(), 0});
      open.push_back(sites.size() - 1);
      i = end;
    } else if (marked[i] == '\x03') {
      MC_CHECK(!open.empty());
      sites[open.back()].size = text.size() - sites[open.back()].offset;
      open.pop_back();
    } else {
      text += marked[i];
    }
  }
  MC_CHECK(open.empty());
  return text;
}

std::string substituted(std::string text, std::string_view key, std::string_view value) {
  MC_CHECK(!key.empty());
  for (size_t at = 0; (at = text.find(key, at)) != std::string::npos; at += value.size()) {
    text.replace(at, key.size(), value);
  }
  return text;
}

bool has_word(std::string_view text, std::string_view word) {
  return find_word(text, word, 0) != std::string_view::npos;
}

std::string with_word(std::string_view text, std::string_view word, std::string_view value) {
  std::string made;
  size_t from = 0;
  for (size_t at = 0; (at = find_word(text, word, from)) != std::string_view::npos;) {
    made.append(text.substr(from, at - from)).append(value);
    from = at + word.size();
  }
  return made.append(text.substr(from));
}

std::string renamed(std::string_view text, const std::map<std::string, std::string>& names) {
  std::string made;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\x01') {
      const size_t end = text.find('\x02', i);
      made.append(text.substr(i, end - i));
      i = end;
    }
    size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end == i) {
      made += text[i++];
      continue;
    }
    const std::string word(text.substr(i, end - i));
    const auto found = names.find(word);
    const bool is_member = i > 0 && text[i - 1] == '.';
    made += found == names.end() || is_member ? word : found->second;
    i = end;
  }
  return made;
}

std::string parenthesized(const std::string& text) {
  const bool is_word = std::ranges::all_of(
      text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
  return is_word ? text : "(" + text + ")";
}

std::string unused_name(std::string_view text, std::string_view stem, int number) {
  std::string name;
  do {
    name = std::string(stem) + std::to_string(number++);
  } while (has_word(text, name));
  return name;
}

std::string indented(std::string_view text, size_t blanks) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    // Marks may precede the line's first character, so the spaces are inserted before the marks.
    if (end > at) made.append(blanks, ' ').append(text.substr(at, end - at));
    if (end < text.size()) made += '\n';
    at = end + 1;
  }
  return made;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string joined(const std::vector<int64_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ", "));
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace mc::forge
