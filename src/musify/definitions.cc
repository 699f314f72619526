// SPDX-License-Identifier: Apache-2.0
//
// Definitions are recognised only by adjacent words: `Type name(`, `Type* name =`, `#define name`.
// After a wrong guess, the name stays unchanged, and the check for remnants does not report it.
#include <algorithm>
#include <array>
#include <vector>

#include "musify/words.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;
using Names = std::set<std::string, std::less<>>;
using Words = std::vector<Word>;

// Words that may come directly before the use of a name, but not before its definition.
constexpr std::array<std::string_view, 44> kNoTypes = {
    "return",     "new",        "delete",     "throw",       "case",
    "goto",       "else",       "do",         "const",       "volatile",
    "static",     "inline",     "extern",     "struct",      "class",
    "union",      "enum",       "typename",   "sizeof",      "not",
    "and",        "or",         "operator",   "using",       "defined",
    "ifdef",      "ifndef",     "undef",      "if",          "elif",
    "define",     "include",    "endif",      "pragma",      "__host__",
    "__device__", "__global__", "__shared__", "constexpr",   "__forceinline__",
    "namespace",  "while",      "co_return",  "thread_local"};

constexpr std::array<std::string_view, 11> kBuiltIn = {"void",  "bool",   "char",     "int",
                                                       "short", "long",   "unsigned", "signed",
                                                       "float", "double", "auto"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

std::string_view text_at(const Words& words, std::size_t i) {
  return i < words.size() ? std::string_view(words[i].text) : std::string_view();
}

bool ends_declarator(std::string_view next) {
  static constexpr std::array<std::string_view, 8> kEnds = {"(", "=", ";", ",", ")", "[", "{", ":"};
  return is_one_of(kEnds, next);
}

// True for `Type* name`, false for `a * name`.
bool is_pointer_declarator(const Words& words, std::size_t i) {
  static constexpr std::array<std::string_view, 11> kBegins = {
      ";",          "{",        "}",      "const",  "static",         "inline",
      "__device__", "__host__", "extern", "struct", "__forceinline__"};
  if (i < 2 || words[i - 2].kind != Kind::kName || is_one_of(kNoTypes, words[i - 2].text)) {
    return i >= 3 && text_at(words, i - 2) == "const" && words[i - 3].kind == Kind::kName;
  }
  const std::string& type = words[i - 2].text;
  if (is_one_of(kBuiltIn, type) || type.ends_with("_t")) return true;
  std::size_t first = i - 2;  // The first word of a qualified name.
  while (first >= 2 && words[first - 1].text == "::") first -= 2;
  const Word* before = first > 0 ? &words[first - 1] : nullptr;
  if (before == nullptr || before->in_directive || is_one_of(kBegins, before->text)) return true;
  // The name is a parameter of class type, not an argument such as `a & b`.
  const bool is_class = type.front() >= 'A' && type.front() <= 'Z';
  return is_class && (before->text == "(" || before->text == ",");
}

// True for macros whose first argument is a new name.
bool names_module(std::string_view macro) {
  return macro == "TORCH_LIBRARY" || macro == "TORCH_LIBRARY_FRAGMENT" ||
         macro == "TORCH_LIBRARY_IMPL" || macro == "PYBIND11_MODULE";
}

bool is_defined_in_cpp(const Words& words, std::size_t i) {
  if (i == 0 || words[i].kind != Kind::kName) return false;
  const Word& before = words[i - 1];
  if (before.text == "define" && before.in_directive) return true;
  if (before.in_directive != words[i].in_directive) return false;
  const std::string_view next = text_at(words, i + 1);
  if (before.text == "struct" || before.text == "class" || before.text == "union" ||
      before.text == "enum" || before.text == "namespace") {
    if (next == "{" || next == ":" || next == "final") return true;
  }
  if (before.text == "using") return next == "=";
  if (before.text == "(" && i > 1) return names_module(words[i - 2].text);
  if (before.text == "typename" || before.text == "class") {
    return next == "," || next == ">" || next == "=";
  }
  const bool is_parameter_of_template = next == ">" && is_one_of(kBuiltIn, before.text);
  if (!ends_declarator(next) && !is_parameter_of_template) return false;
  if (before.text == "*" || before.text == "&") return is_pointer_declarator(words, i);
  if (before.text == ">" || before.text == ">>") {
    return next == "(" || next == "=" || next == ";" || next == "{";
  }
  return before.kind == Kind::kName && !is_one_of(kNoTypes, before.text);
}

constexpr std::size_t kStatementWordsMax = 256;

// Finds further declarators, such as `name` in `int a = f(x, y), *name = 1`: an earlier name of the
// same statement is a definition.
class Declarators {
 public:
  // True if the word at `i` is the name of a further declarator.  REQUIRES: calls have increasing
  // `i`.
  bool is_further(const Words& words, std::size_t i) {
    static constexpr std::array<std::string_view, 5> kEnds = {"=", ";", ",", "[", "{"};
    const std::string& text = words[i].text;
    if (words[i].in_directive) return false;
    if (opens_bracket(words, i)) {
      const std::string_view before = i > 0 ? text_at(words, i - 1) : "";
      statements_.push_back({false, text == "{" || before == "for" || before == "if"});
    } else if (closes_bracket(words, i)) {
      if (statements_.size() > 1) statements_.pop_back();
      if (text == "}" && text_at(words, i + 1) != ",") statements_.back().declares = false;
    } else if (text == ";") {
      statements_.back().declares = false;
    }
    Statement& statement = statements_.back();
    if (words[i].kind != Kind::kName || !statement.may_declare) return false;
    std::size_t k = i;
    while (k > 0 && (text_at(words, k - 1) == "*" || text_at(words, k - 1) == "&")) --k;
    const bool is_first = k == 0 || text_at(words, k - 1) != ",";
    if (is_first && is_defined_in_cpp(words, i)) statement.declares = true;
    return !is_first && statement.declares && is_one_of(kEnds, text_at(words, i + 1));
  }

 private:
  struct Statement {
    bool declares = false;     // True if the statement has defined a name.
    bool may_declare = false;  // False for arguments, parameters and subscripts.
  };
  std::vector<Statement> statements_ = {{false, true}};  // One for each open bracket.
};

// Adds the names of `enum E { a, b = 1 }` and `auto& [a, b] =`; `open` is the index of the bracket.
void add_listed(const Words& words, std::size_t open, Names& names) {
  std::size_t depth = 0;
  const std::size_t end = std::min(words.size(), open + kStatementWordsMax);
  for (std::size_t i = open; i < end; ++i) {
    const std::string& text = words[i].text;
    const bool begins = words[i].kind == Kind::kName && depth == 1 &&
                        (i == open + 1 || text_at(words, i - 1) == ",");
    if (begins) names.insert(text);
    if (opens_bracket(words, i)) ++depth;
    if (closes_bracket(words, i) && --depth == 0) return;
  }
}

// Adds names in lists at the word `i`: enumerators, structured bindings, parameters of macros.
void add_lists(const Words& words, std::size_t i, Names& names) {
  const std::string& text = words[i].text;
  if (text == "enum") {
    std::size_t k = i + 1;
    while (k < words.size() && k < i + 8 && words[k].text != "{" && words[k].text != ";") ++k;
    if (text_at(words, k) == "{") add_listed(words, k, names);
  }
  if (text == "auto") {
    std::size_t k = i + 1;
    while (text_at(words, k) == "&" || text_at(words, k) == "&&") ++k;
    if (text_at(words, k) == "[") add_listed(words, k, names);
  }
  const bool has_parameters = text == "define" && words[i].in_directive &&
                              text_at(words, i + 2) == "(" &&
                              words[i + 2].offset == words[i + 1].end();
  if (has_parameters) add_listed(words, i + 2, names);
}

// True for `name` in `namespace a::name {` and in `int (*name)(int)`.
bool is_nested_name(const Words& words, std::size_t i) {
  if (i < 3 || words[i].kind != Kind::kName) return false;
  const std::string_view next = text_at(words, i + 1);
  if (words[i - 1].text == "*" && words[i - 2].text == "(" && next == ")") {
    return text_at(words, i + 2) == "(" && words[i - 3].kind == Kind::kName &&
           !is_one_of(kNoTypes, words[i - 3].text);
  }
  if (next != "{" && next != "::") return false;
  constexpr std::size_t kLevelsMax = 16;
  for (std::size_t k = 0; k < kLevelsMax && i >= 2 && words[i - 1].text == "::"; ++k) i -= 2;
  return i > 0 && words[i - 1].text == "namespace";
}

bool is_defined_in_python(const Words& words, std::size_t i) {
  if (words[i].kind != Kind::kName) return false;
  const std::string_view before = i > 0 ? text_at(words, i - 1) : std::string_view();
  if (before == "def" || before == "class" || before == "as" || before == "for") return true;
  return text_at(words, i + 1) == "=" || text_at(words, i + 1) == ":=";
}

void add_parameters(const Words& words, std::size_t def, Names& names) {
  std::size_t depth = 0;
  for (std::size_t i = def + 2; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (words[i].kind == Kind::kName && depth == 1) {
      const std::string& before = words[i - 1].text;
      if (before == "(" || before == "," || before == "*" || before == "**") names.insert(text);
    }
    if (text == "(" || text == "[") ++depth;
    if ((text == ")" || text == "]") && --depth == 0) return;
    if (depth == 0) return;
  }
}

constexpr std::size_t kImportWordsMax = 256;

// Adds the names of `from torch import a, b as c`.
void add_imports(const Words& words, std::size_t from, Names& names) {
  if (text_at(words, from + 1) != "torch" || text_at(words, from + 2) != "import") return;
  const std::size_t end = std::min(words.size(), from + kImportWordsMax);
  for (std::size_t i = from + 3; i < end && words[i].kind != Kind::kNewline; ++i) {
    if (words[i].kind == Kind::kName) names.insert(words[i].text);
  }
}

}  // namespace

Names names_defined_in(const std::vector<Unit>& units) {
  Names names;
  for (const Unit& unit : units) {
    const bool is_cpp = unit.language == Language::kCpp;
    Declarators declarators;
    for (std::size_t i = 0; i < unit.words.size(); ++i) {
      const bool is_further = is_cpp && declarators.is_further(unit.words, i);
      const bool is_defined =
          is_cpp ? is_defined_in_cpp(unit.words, i) || is_nested_name(unit.words, i) || is_further
                 : is_defined_in_python(unit.words, i);
      if (is_defined) names.insert(unit.words[i].text);
      if (is_cpp) add_lists(unit.words, i, names);
      if (!is_cpp && unit.words[i].text == "def") add_parameters(unit.words, i, names);
      if (!is_cpp && unit.words[i].text == "from") add_imports(unit.words, i, names);
    }
  }
  return names;
}

}  // namespace mc::musify
