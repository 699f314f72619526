// SPDX-License-Identifier: Apache-2.0
//
// A message is not source: its quotes and brackets need not match, and its words may belong to C++
// or to Python.  So names are extracted here, and the rules of both languages are applied to them.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "musify/apply_rules.h"
#include "musify/edits.h"
#include "musify/port.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;

bool is_name_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_path_byte(char c) { return is_name_byte(c) || c == '.' || c == '/'; }

bool is_header(std::string_view path) {
  return path.ends_with(".h") || path.ends_with(".cuh") || path.ends_with(".muh");
}

// The length of the run of bytes at the start of `text` that `is_part` accepts.
template <typename Predicate>
std::size_t run_length(std::string_view text, Predicate is_part) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_part) - text.begin());
}

std::pair<Kind, std::size_t> next_word(std::string_view rest) {
  if (is_name_byte(rest.front())) {
    const std::size_t path = run_length(rest, is_path_byte);
    if (is_header(rest.substr(0, path))) return {Kind::kHeader, path};
    return {Kind::kName, run_length(rest, is_name_byte)};
  }
  const bool is_long = rest.starts_with("::") || rest.starts_with("->");
  return {Kind::kOther, is_long ? 2 : 1};
}

std::vector<Word> words_of(std::string_view message) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < message.size();) {
    const auto [kind, size] = next_word(message.substr(at));
    if (std::isspace(static_cast<unsigned char>(message[at])) == 0) {
      Word word;
      word.kind = kind;
      word.text = message.substr(at, size);
      word.offset = word.content = at;
      word.size = size;
      words.push_back(std::move(word));
    }
    at += size;
  }
  return words;
}

// Ports names of keyword arguments, and the name of the platform itself.
void change_alone(const std::vector<Word>& words, const Rules& rules, Edits& edits) {
  const bool to_musa = rules.target == Target::kMusa;
  const Pair platform = to_musa ? Pair{"CUDA", "MUSA"} : Pair{"MUSA", "CUDA"};
  for (const Word& word : words) {
    if (word.text == platform.from) edits.replace(word.offset, word.size, platform.to, "message");
    for (const Rule& rule : rules.rules) {
      if (rule.kind != Rule::Kind::kKeyword) continue;
      const auto found = std::ranges::find(rule.pairs, word.text, &Pair::from);
      if (found != rule.pairs.end()) edits.replace(word.offset, word.size, found->to, rule.id);
    }
  }
}

}  // namespace

std::string port_message(std::string_view message, const Rules& rules) {
  // The space ensures that no word's content is at offset 0.
  const std::string text = " " + std::string(message);
  Edits edits(text, Lines::kStay);
  Unit unit{Language::kPython, words_of(text), ""};
  change_alone(unit.words, rules, edits);
  apply_rules(unit, rules, {}, {}, edits);
  unit.language = Language::kCpp;
  apply_rules(unit, rules, {}, {}, edits);
  return edits.apply().substr(1);
}

}  // namespace mc::musify
