// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_branches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lex/token.h"

namespace mc::eval {
namespace {

enum class Truth : std::uint8_t { kFalse, kTrue, kUnknown };

using Macros = std::set<std::string_view>;
using Words = std::vector<std::string_view>;

Truth truth_of(bool value) { return value ? Truth::kTrue : Truth::kFalse; }

Truth negated(Truth value) {
  return value == Truth::kUnknown ? value : truth_of(value == Truth::kFalse);
}

// The value of a condition of #if, by recursive descent.
class Condition {
 public:
  Condition(const Words& words, const Macros& macros) : words_(words), macros_(macros) {}

  Truth value() {
    const Truth value = any_of();
    return at_ == words_.size() ? value : Truth::kUnknown;
  }

 private:
  bool skip(std::string_view word) {
    if (at_ == words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  Truth any_of() {
    Truth value = all_of();
    while (skip("||")) {
      const Truth next = all_of();
      if (value != Truth::kTrue && next != Truth::kFalse) value = next;
    }
    return value;
  }

  Truth all_of() {
    Truth value = one();
    while (skip("&&")) {
      const Truth next = one();
      if (value != Truth::kFalse && next != Truth::kTrue) value = next;
    }
    return value;
  }

  Truth one() {
    if (++depth_ > kDepthMax) return Truth::kUnknown;
    if (skip("!")) return negated(one());
    if (skip("0")) return Truth::kFalse;
    if (skip("1")) return Truth::kTrue;
    if (skip("(")) {
      const Truth value = any_of();
      return skip(")") ? value : Truth::kUnknown;
    }
    if (!skip("defined")) {
      at_ = std::min(at_ + 1, words_.size());  // A macro, whose value is not known.
      return Truth::kUnknown;
    }
    const bool is_wrapped = skip("(");
    if (at_ == words_.size()) return Truth::kUnknown;
    const bool is_defined = macros_.contains(words_[at_++]);
    if (is_wrapped && !skip(")")) return Truth::kUnknown;
    return is_defined ? Truth::kTrue : Truth::kUnknown;
  }

  static constexpr std::size_t kDepthMax = 64;
  const Words& words_;
  const Macros& macros_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

// One #if with its branches, as far as it was read.
struct Choice {
  Truth is_taken = Truth::kFalse;  // A branch before this one is read.
  bool is_dead = false;            // This branch is not read.
  bool is_within_dead = false;     // The choice itself is in a branch that is not read.
};

struct Directive {
  std::size_t begin = 0;  // The #.
  std::size_t end = 0;
  Words words;
};

std::vector<Directive> directives_of(std::string_view source) {
  std::vector<Directive> directives;
  bool was_inside = false;
  for (const lex::Token& token : lex::tokenize(source)) {
    const std::string_view text = lex::text_of(source, token);
    const bool begins = token.in_directive && !was_inside;
    if (begins) directives.push_back({token.offset, 0, {}});
    was_inside = token.in_directive;
    if (!token.in_directive || lex::is_trivia(token)) continue;
    directives.back().end = token.offset + token.size;
    if (text != "#") directives.back().words.push_back(text);
  }
  return directives;
}

Truth value_of(Words words, const Macros& macros) {
  const std::string_view name = words[0];
  words.erase(words.begin());
  if (name != "ifdef" && name != "ifndef") return Condition(words, macros).value();
  const bool is_defined = !words.empty() && macros.contains(words[0]);
  const Truth value = is_defined ? Truth::kTrue : Truth::kUnknown;
  return name == "ifdef" ? value : negated(value);
}

// Goes on to the next branch, whose condition has this value.
void begin_branch(Choice& choice, Truth value) {
  choice.is_dead = choice.is_taken == Truth::kTrue || value == Truth::kFalse;
  if (choice.is_taken != Truth::kTrue && value != Truth::kFalse) choice.is_taken = value;
}

void blank(std::string& text, std::size_t begin, std::size_t end) {
  const auto at = [&](std::size_t i) { return text.begin() + static_cast<std::ptrdiff_t>(i); };
  std::replace_if(at(begin), at(end), [](char c) { return c != '\n' && c != '\r'; }, ' ');
}

// Makes 0 of the condition of an #elif that is never asked for.
void end_condition(std::string& text, std::string_view source, const Directive& directive) {
  if (directive.words.size() < 2) return;
  const auto begin = static_cast<std::size_t>(directive.words[1].data() - source.data());
  blank(text, begin, directive.end);
  text[begin] = '0';
}

}  // namespace

std::string without_dead_branches(std::string_view source, const Macros& macros) {
  std::string text(source);
  const std::vector<Directive> directives = directives_of(source);
  Macros known = macros;
  for (const Directive& directive : directives) {
    const Words& words = directive.words;
    const bool changes = words.size() > 1 && (words[0] == "define" || words[0] == "undef");
    if (changes) known.erase(words[1]);
  }
  std::vector<Choice> choices;
  std::size_t read = 0;  // The end of the directive before.
  for (const Directive& directive : directives) {
    const bool is_within_dead = !choices.empty() && choices.back().is_within_dead;
    const bool is_dead = is_within_dead || (!choices.empty() && choices.back().is_dead);
    if (is_dead) blank(text, read, directive.begin);
    read = directive.end;
    const std::string_view name = directive.words.empty() ? "" : directive.words[0];
    const bool begins = name == "if" || name == "ifdef" || name == "ifndef";
    const bool is_border = name == "elif" || name == "else" || name == "endif";
    if (is_border && choices.empty()) continue;
    // The directive goes with the branch that it is in.
    if (is_border ? is_within_dead : is_dead) read = directive.begin;
    if (begins) {
      choices.push_back({.is_within_dead = is_dead});
      begin_branch(choices.back(), value_of(directive.words, known));
    } else if (name == "elif") {
      if (choices.back().is_taken == Truth::kTrue) end_condition(text, source, directive);
      begin_branch(choices.back(), value_of(directive.words, known));
    } else if (name == "else") {
      begin_branch(choices.back(), Truth::kTrue);
    } else if (name == "endif") {
      choices.pop_back();
    }
  }
  return text;
}

}  // namespace mc::eval
