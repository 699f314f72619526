// SPDX-License-Identifier: Apache-2.0
//
// A heuristic without a parser: a name counts as declared if it follows another name ("float v",
// "Tensor f"), or a * or & after the name of a type ("float* o").  Names of types, of members and
// names that begin with two underscores are not replaced.
#include "loop/structure.h"

#include <map>
#include <set>
#include <vector>

#include "core/hash.h"
#include "lex/token.h"

namespace mc::loop {
namespace {

using lex::Kind;

struct Word {
  Kind kind;
  std::string text;
};

std::vector<Word> words_of(std::string_view source) {
  std::vector<Word> words;
  for (const lex::Token& token : lex::tokenize(source)) {
    if (lex::is_trivia(token) || token.in_directive) continue;
    words.push_back({token.kind, lex::spelling_of(source, token)});
  }
  return words;
}

bool is_type(const std::string& text) {
  static const std::set<std::string> kTypes = {
      "auto",   "bool",     "char", "const",  "double", "float", "float2", "float4",
      "half",   "half2",    "int",  "int4",   "long",   "short", "signed", "size_t",
      "static", "unsigned", "void", "inline", "Tensor", "extern"};
  return kTypes.contains(text) || text.ends_with("_t");
}

bool is_declared_at(const std::vector<Word>& words, size_t i) {
  static const std::set<std::string> kNoTypes = {"return", "else", "case", "goto", "new", "delete"};
  const Word& word = words[i];
  if (i == 0 || word.kind != Kind::kIdentifier) return false;
  if (is_type(word.text) || word.text.starts_with("__")) return false;
  const Word& before = words[i - 1];
  if (before.kind == Kind::kIdentifier) return !kNoTypes.contains(before.text);
  return (before.text == "*" || before.text == "&") && i >= 2 && is_type(words[i - 2].text);
}

bool is_member_at(const std::vector<Word>& words, size_t i) {
  return i > 0 && (words[i - 1].text == "." || words[i - 1].text == "->");
}

}  // namespace

std::string native_source(std::string_view answer) {
  std::string source;
  for (const std::string_view quote : {"\"\"\"", "'''"}) {
    for (size_t begin = answer.find(quote); begin != std::string_view::npos;) {
      const size_t end = answer.find(quote, begin + quote.size());
      if (end == std::string_view::npos) break;
      const std::string_view text = answer.substr(begin + 3, end - begin - 3);
      if (text.find("__global__") != std::string_view::npos) source += text;
      begin = answer.find(quote, end + quote.size());
    }
  }
  return source.empty() ? std::string(answer) : source;
}

std::string normalised_tokens(std::string_view source) {
  const std::vector<Word> words = words_of(source);
  std::set<std::string> declared;
  for (size_t i = 0; i < words.size(); ++i) {
    if (is_declared_at(words, i)) declared.insert(words[i].text);
  }
  std::map<std::string, std::string> numbers;
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    const Word& word = words[i];
    if (word.kind == Kind::kNumber) {
      text += "0 ";
    } else if (word.kind == Kind::kString || word.kind == Kind::kCharacter) {
      text += "\"\" ";
    } else if (declared.contains(word.text) && !is_member_at(words, i)) {
      text += numbers.try_emplace(word.text, "$" + std::to_string(numbers.size())).first->second;
      text += ' ';
    } else {
      text += word.text + ' ';
    }
  }
  return text;
}

std::string structure_of(std::string_view answer) {
  return content_hash({normalised_tokens(native_source(answer))});
}

}  // namespace mc::loop
