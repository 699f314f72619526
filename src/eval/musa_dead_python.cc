// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_dead_python.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lex/edit.h"
#include "musify/words.h"

namespace mc::eval {
namespace {

using Kind = musify::Word::Kind;
using Words = std::span<const musify::Word>;
using Truth = std::optional<bool>;
// The values of names; nothing for a name that has several values.
using Names = std::map<std::string, Truth, std::less<>>;

bool is(const musify::Word& word, std::string_view text) {
  return word.kind != Kind::kString && word.text == text;
}

bool opens(const musify::Word& word) {
  return word.kind == Kind::kOther && (word.text == "(" || word.text == "[" || word.text == "{");
}

bool closes(const musify::Word& word) {
  return word.kind == Kind::kOther && (word.text == ")" || word.text == "]" || word.text == "}");
}

// The index of the first word outside of brackets for which `fits` is true, or words.size().
template <typename Function>
std::size_t find_outside(Words words, Function fits) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (depth == 0 && fits(words[i])) return i;
    if (opens(words[i])) ++depth;
    if (closes(words[i])) {
      if (depth == 0) return words.size();
      --depth;
    }
  }
  return words.size();
}

// ---- Conditions ---------------------------------------------------------------------------------

struct Fact {
  std::vector<std::string_view> words;
  bool value;
};

const std::vector<Fact>& facts() {
  static const std::vector<Fact> kFacts = {
      {{"hasattr", "(", "torch", ",", "musa", ")"}, true},
      {{"torch", ".", "musa", ".", "is_available", "(", ")"}, true},
      {{"torch_musa", ".", "is_available", "(", ")"}, true},
      {{"torch", ".", "cuda", ".", "is_available", "(", ")"}, false},
      {{"True"}, true},
      {{"False"}, false}};
  return kFacts;
}

bool are(Words words, const std::vector<std::string_view>& texts) {
  return std::ranges::equal(words, texts, {}, &musify::Word::text);
}

Truth value_of(Words words, const Names& names, int depth = 0);

// Both sides of the first `word` outside of brackets, or nothing.
struct Sides {
  Words left, right;
};

std::optional<Sides> sides_of(Words words, std::string_view word) {
  const std::size_t at = find_outside(words, [&](const auto& one) { return is(one, word); });
  if (at == words.size()) return std::nullopt;
  return Sides{words.first(at), words.subspan(at + 1)};
}

Truth joined(const Sides& sides, const Names& names, int depth, bool deciding) {
  const Truth left = value_of(sides.left, names, depth);
  const Truth right = value_of(sides.right, names, depth);
  if (left == deciding || right == deciding) return deciding;
  return left && right ? Truth(!deciding) : std::nullopt;
}

Truth value_of(Words words, const Names& names, int depth) {
  constexpr int kDepthMax = 32;
  if (words.empty() || ++depth > kDepthMax) return std::nullopt;
  if (const auto sides = sides_of(words, "or")) return joined(*sides, names, depth, true);
  if (const auto sides = sides_of(words, "and")) return joined(*sides, names, depth, false);
  if (is(words[0], "not")) {
    const Truth value = value_of(words.subspan(1), names, depth);
    return value ? Truth(!*value) : std::nullopt;
  }
  if (is(words[0], "(") && is(words.back(), ")") &&
      find_outside(words.subspan(1), closes) == words.size() - 2) {
    return value_of(words.subspan(1, words.size() - 2), names, depth);
  }
  const auto fact =
      std::ranges::find_if(facts(), [&](const Fact& one) { return are(words, one.words); });
  if (fact != facts().end()) return fact->value;
  const auto name = words.size() == 1 ? names.find(words[0].text) : names.end();
  return name == names.end() ? std::nullopt : name->second;
}

// ---- Statements ---------------------------------------------------------------------------------

// The offsets [begin, end) in the module, and the text that replaces them.
struct Dead {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view replacement;
};

struct Line {
  Words words;  // A logical line, without its end.
  std::size_t indent = 0;
  std::size_t colon = 0;  // The index of the word that ends a clause's head, or words.size().
};

class Program {
 public:
  explicit Program(std::string_view text) : text_(text), words_(musify::python_words(text)) {
    for (std::size_t first = 0; first < words_.size();) {
      std::size_t last = first;
      while (last < words_.size() && words_[last].kind != Kind::kNewline) ++last;
      if (last > first) add(Words(words_).subspan(first, last - first));
      first = last + 1;
    }
  }

  std::vector<Dead> dead() {
    for (std::size_t i = 0; i < lines_.size(); ++i) find_handlers(i);
    find_names();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (begins(i, "if")) find_branches(i);
      find_expressions(lines_[i].words);
    }
    return std::move(dead_);
  }

 private:
  void add(Words words) {
    const std::size_t offset = words[0].offset;
    const std::size_t end = offset == 0 ? text_.npos : text_.rfind('\n', offset - 1);
    const std::size_t colon = find_outside(words, [](const auto& one) { return is(one, ":"); });
    lines_.push_back({words, offset - (end == text_.npos ? 0 : end + 1), colon});
  }

  bool begins(std::size_t i, std::string_view keyword) const {
    return i < lines_.size() && is(lines_[i].words[0], keyword) &&
           lines_[i].colon < lines_[i].words.size();
  }

  // The first line after the block of the clause at `i`.
  std::size_t end_of(std::size_t i) const {
    std::size_t k = i + 1;
    while (k < lines_.size() && lines_[k].indent > lines_[i].indent) ++k;
    return k;
  }

  // The block of the clause at `i`, on its line or on the following ones.
  Dead block_of(std::size_t i) const {
    const Line& line = lines_[i];
    const bool is_in_line = line.colon + 1 < line.words.size();
    const std::size_t last = end_of(i) - 1;
    if (!is_in_line && last == i) return {};  // A clause without a block is a syntax error.
    const Words first = is_in_line ? line.words.subspan(line.colon + 1) : lines_[i + 1].words;
    return {first[0].offset, lines_[last].words.back().end(), "raise NameError"};
  }

  bool is_dead(const musify::Word& word) const {
    return std::ranges::any_of(dead_, [&](const Dead& range) {
      return word.offset >= range.begin && word.offset < range.end;
    });
  }

  bool names_musa(const Dead& range) const {
    return std::ranges::any_of(words_, [&](const musify::Word& word) {
      return word.offset >= range.begin && word.offset < range.end && word.kind == Kind::kName &&
             (word.text == "musa" || word.text == "torch_musa");
    });
  }

  // Adds the handlers of a `try` at `i` that are dead.
  void find_handlers(std::size_t i) {
    if (!begins(i, "try") || !names_musa(block_of(i))) return;
    for (std::size_t k = end_of(i); begins(k, "except") && lines_[k].indent == lines_[i].indent;
         k = end_of(k)) {
      dead_.push_back(block_of(k));
    }
  }

  // Records assignments such as `HAS_MUSA = hasattr(torch, "musa")`.
  void find_names() {
    for (const Line& line : lines_) {
      const Words words = line.words;
      if (words.size() < 3 || words[0].kind != Kind::kName || !is(words[1], "=")) continue;
      if (is_dead(words[0])) continue;
      const Truth value = value_of(words.subspan(2), names_);
      const auto [name, is_new] = names_.emplace(words[0].text, value);
      if (!is_new && name->second != value) name->second = std::nullopt;
    }
  }

  // Adds the dead branches of an `if` at `i`.
  void find_branches(std::size_t i) {
    Truth is_taken = false;  // A branch before this one runs.
    const std::size_t indent = lines_[i].indent;
    for (std::size_t k = i;; k = end_of(k)) {
      const bool is_last = begins(k, "else") && lines_[k].indent == indent;
      const bool goes_on = k == i || (begins(k, "elif") && lines_[k].indent == indent);
      if (!is_last && !goes_on) return;
      const Words head = lines_[k].words.first(lines_[k].colon);
      const Truth value = is_last ? Truth(true) : value_of(head.subspan(1), names_);
      if (is_taken == true || value == false) {
        dead_.push_back(block_of(k));
      } else {
        is_taken = value;
      }
      if (is_last) return;
    }
  }

  // Adds the dead operands of expressions such as `torch.musa if hasattr(torch, "musa") else
  // torch.cuda`.
  void find_expressions(Words words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (!is(words[i], "if")) continue;
      const Words behind = words.subspan(i + 1);
      const std::size_t size =
          find_outside(behind, [](const auto& one) { return is(one, "else"); });
      if (size == behind.size()) continue;
      const Truth value = value_of(behind.first(size), names_);
      if (!value) continue;
      const Words other = behind.subspan(size + 1);
      const Words chosen = words.first(i);
      dead_.push_back(*value ? bytes_of(other.first(expression_size(other)))
                             : bytes_of(chosen.subspan(expression_begin(chosen))));
    }
  }

  static Dead bytes_of(Words words) {
    return words.empty() ? Dead{} : Dead{words.front().offset, words.back().end(), "None"};
  }

  static bool ends_expression(const musify::Word& word) {
    static constexpr std::array<std::string_view, 7> kEnds = {",",      ":", "=", "for",
                                                              "return", ";", ":="};
    return std::ranges::any_of(kEnds, [&](std::string_view end) { return is(word, end); });
  }

  static std::size_t expression_size(Words words) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (depth == 0 && (closes(words[i]) || ends_expression(words[i]))) return i;
      if (opens(words[i])) ++depth;
      if (closes(words[i])) --depth;
    }
    return words.size();
  }

  static std::size_t expression_begin(Words words) {
    std::size_t depth = 0;
    for (std::size_t i = words.size(); i > 0; --i) {
      if (depth == 0 && (opens(words[i - 1]) || ends_expression(words[i - 1]))) return i;
      if (closes(words[i - 1])) ++depth;
      if (opens(words[i - 1])) --depth;
    }
    return 0;
  }

  std::string_view text_;
  std::vector<musify::Word> words_;
  std::vector<Line> lines_;
  Names names_;
  std::vector<Dead> dead_;
};

}  // namespace

std::string live_python(std::string_view module) {
  std::vector<Dead> dead = Program(module).dead();
  std::ranges::stable_sort(dead, {}, &Dead::begin);
  std::vector<lex::Edit> edits;
  std::size_t read = 0;  // The end of the previous edit, which may contain this one.
  for (const Dead& one : dead) {
    if (one.begin < read || one.begin >= one.end) continue;
    read = one.end;
    const std::string_view text = module.substr(one.begin, one.end - one.begin);
    edits.push_back({one.begin, text.size(), std::string(one.replacement)});
    edits.back().replacement.append(static_cast<std::size_t>(std::ranges::count(text, '\n')), '\n');
  }
  return lex::apply_edits(module, std::move(edits));
}

}  // namespace mc::eval
