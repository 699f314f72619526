// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_branches.h"

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstddef>
#include <system_error>
#include <utility>

#include "lex/token.h"

namespace mc::eval {
namespace {

// A value of the preprocessor; nothing where it is not known.
using Value = std::optional<int64_t>;
using Words = std::vector<std::string_view>;

bool is_true(const Value& value) { return value && *value != 0; }
bool is_false(const Value& value) { return value && *value == 0; }

Value either(const Value& one, const Value& other) {
  if (is_true(one) || is_true(other)) return 1;
  return one && other ? Value(0) : std::nullopt;
}

Value both(const Value& one, const Value& other) {
  if (is_false(one) || is_false(other)) return 0;
  return one && other ? Value(1) : std::nullopt;
}

// A decimal number without a suffix, such as `310`.
Value number_of(std::string_view word) {
  int64_t number = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && rest == end ? Value(number) : std::nullopt;
}

Value value_of_definition(std::string_view name, const Macros& macros) {
  const auto macro = macros.find(name);
  return macro == macros.end() ? std::nullopt : Value(macro->second.has_value());
}

// The value of a condition of #if, by recursive descent.
class Condition {
 public:
  Condition(const Words& words, const Macros& macros) : words_(words), macros_(macros) {}

  Value value() {
    const Value value = any_of();
    return at_ == words_.size() ? value : std::nullopt;
  }

 private:
  bool skip(std::string_view word) {
    if (at_ == words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  Value any_of() {
    Value value = all_of();
    while (skip("||")) value = either(value, all_of());
    return value;
  }

  Value all_of() {
    Value value = comparison();
    while (skip("&&")) value = both(value, comparison());
    return value;
  }

  Value comparison() {
    const Value left = one();
    if (at_ == words_.size()) return left;
    const std::string_view sign = words_[at_];
    if (!is_comparison(sign)) return left;
    ++at_;
    const Value right = one();
    if (!left || !right) return std::nullopt;
    const auto order = *left <=> *right;
    const bool holds = sign == "=="   ? order == 0
                       : sign == "!=" ? order != 0
                       : sign == "<"  ? order < 0
                       : sign == "<=" ? order <= 0
                       : sign == ">"  ? order > 0
                                      : order >= 0;
    return holds ? 1 : 0;
  }

  static bool is_comparison(std::string_view word) {
    return word == "==" || word == "!=" || word == "<" || word == "<=" || word == ">" ||
           word == ">=";
  }

  Value one() {
    if (++depth_ > kDepthMax) return std::nullopt;
    if (skip("!")) {
      const Value value = one();
      return value ? Value(*value == 0) : std::nullopt;
    }
    if (skip("(")) {
      const Value value = any_of();
      return skip(")") ? value : std::nullopt;
    }
    if (skip("defined")) return is_defined();
    if (at_ == words_.size()) return std::nullopt;
    const std::string_view word = words_[at_++];
    const auto macro = macros_.find(word);
    return macro == macros_.end() ? number_of(word) : macro->second.value_or(0);
  }

  Value is_defined() {
    const bool is_wrapped = skip("(");
    if (at_ == words_.size()) return std::nullopt;
    const Value value = value_of_definition(words_[at_++], macros_);
    return is_wrapped && !skip(")") ? std::nullopt : value;
  }

  static constexpr std::size_t kDepthMax = 64;
  const Words& words_;
  const Macros& macros_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

// The state of one pass over an #if with its branches, as far as it was read.
struct Choice {
  Value is_taken = 0;    // True if an earlier branch is read.
  bool is_dead = false;  // The current branch is not read.
};

// An #if in all passes.
struct Choices {
  std::vector<Choice> passes;
  bool is_within_dead = false;  // The #if is itself in a branch that is not read.

  bool is_dead() const { return std::ranges::all_of(passes, &Choice::is_dead); }
  bool is_taken() const {
    return std::ranges::all_of(passes, [](const Choice& one) { return is_true(one.is_taken); });
  }
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

Value value_of(Words words, const Macros& macros) {
  const std::string_view name = words[0];
  words.erase(words.begin());
  if (name != "ifdef" && name != "ifndef") return Condition(words, macros).value();
  const Value is_defined = words.empty() ? std::nullopt : value_of_definition(words[0], macros);
  if (name == "ifdef" || !is_defined) return is_defined;
  return *is_defined == 0;
}

// Goes on to the next branch, whose condition has this value.
void begin_branch(Choice& choice, const Value& value) {
  choice.is_dead = is_true(choice.is_taken) || is_false(value);
  if (!is_true(choice.is_taken) && !is_false(value)) choice.is_taken = value;
}

void begin_branches(Choices& choices, const Words& words, const std::vector<Macros>& passes) {
  for (std::size_t i = 0; i < passes.size(); ++i) {
    begin_branch(choices.passes[i], words[0] == "else" ? Value(1) : value_of(words, passes[i]));
  }
}

void blank(std::string& text, std::size_t begin, std::size_t end) {
  const auto at = [&](std::size_t i) { return text.begin() + static_cast<std::ptrdiff_t>(i); };
  std::replace_if(at(begin), at(end), [](char c) { return c != '\n' && c != '\r'; }, ' ');
}

// Replaces the condition of an #elif that is never evaluated by 0.
void end_condition(std::string& text, std::string_view source, const Directive& directive) {
  if (directive.words.size() < 2) return;
  const auto begin = static_cast<std::size_t>(directive.words[1].data() - source.data());
  blank(text, begin, directive.end);
  text[begin] = '0';
}

}  // namespace

std::string without_dead_branches(std::string_view source, std::vector<Macros> passes) {
  std::string text(source);
  const std::vector<Directive> directives = directives_of(source);
  for (const Directive& directive : directives) {
    const Words& words = directive.words;
    const bool changes = words.size() > 1 && (words[0] == "define" || words[0] == "undef");
    if (!changes) continue;
    for (Macros& known : passes) known.erase(words[1]);
  }
  std::vector<Choices> choices;
  std::size_t read = 0;  // The end of the directive before.
  for (const Directive& directive : directives) {
    const bool is_within_dead = !choices.empty() && choices.back().is_within_dead;
    const bool is_dead = is_within_dead || (!choices.empty() && choices.back().is_dead());
    if (is_dead) blank(text, read, directive.begin);
    read = directive.end;
    const std::string_view name = directive.words.empty() ? "" : directive.words[0];
    const bool begins = name == "if" || name == "ifdef" || name == "ifndef";
    const bool is_border = name == "elif" || name == "else" || name == "endif";
    if (is_border && choices.empty()) continue;
    // The directive is removed with the branch that contains it.
    if (is_border ? is_within_dead : is_dead) read = directive.begin;
    if (begins) choices.push_back({std::vector<Choice>(passes.size()), is_dead});
    if (name == "elif" && choices.back().is_taken()) end_condition(text, source, directive);
    if (name == "endif") {
      choices.pop_back();
    } else if (begins || is_border) {
      begin_branches(choices.back(), directive.words, passes);
    }
  }
  return text;
}

}  // namespace mc::eval
