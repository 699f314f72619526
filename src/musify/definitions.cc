// SPDX-License-Identifier: Apache-2.0
//
// Definitions are recognised by their neighbours alone: `Type name(`, `Type* name =`, `#define
// name`.  A wrong guess leaves a name as it is, and the check for remnants does not report it.
#include <algorithm>
#include <array>

#include "musify/words.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;
using Names = std::set<std::string, std::less<>>;
using Words = std::vector<Word>;

// Words that may come directly before a name that is used, not defined.
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

// `Type* name`, and not `a * name`.
bool is_pointer_declarator(const Words& words, std::size_t i) {
  if (i < 2 || words[i - 2].kind != Kind::kName || is_one_of(kNoTypes, words[i - 2].text)) {
    return i >= 3 && text_at(words, i - 2) == "const" && words[i - 3].kind == Kind::kName;
  }
  const std::string& type = words[i - 2].text;
  if (is_one_of(kBuiltIn, type) || type.ends_with("_t")) return true;
  const std::string_view before = i >= 3 ? text_at(words, i - 3) : ";";
  return before == ";" || before == "{" || before == "}" || before == "const" ||
         before == "static" || before == "__device__" || before == "extern" || before == "struct";
}

// Macros whose first argument is a new name.
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
  if (before.text == ">") return next == "(" || next == "=" || next == ";" || next == "{";
  return before.kind == Kind::kName && !is_one_of(kNoTypes, before.text);
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

// The names of `from torch import a, b as c`.
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
    for (std::size_t i = 0; i < unit.words.size(); ++i) {
      const bool is_defined =
          is_cpp ? is_defined_in_cpp(unit.words, i) : is_defined_in_python(unit.words, i);
      if (is_defined) names.insert(unit.words[i].text);
      if (!is_cpp && unit.words[i].text == "def") add_parameters(unit.words, i, names);
      if (!is_cpp && unit.words[i].text == "from") add_imports(unit.words, i, names);
    }
  }
  return names;
}

}  // namespace mc::musify
