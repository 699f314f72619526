// SPDX-License-Identifier: Apache-2.0
#include "compile/canonical.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "lex/token.h"

namespace mc::compile {
namespace {

using lex::Kind;
using lex::Token;

// Sequences that compilers may read otherwise than lex does, wherever they stand.
constexpr std::array<std::string_view, 10> kRareTexts = {
    "?"
    "?",
    "<:",
    ":>",
    "<%",
    "%>",
    "%:",
    "<=>",
    "\\ ",
    "\\\f",
    "\\\v"};

// In the name of what tells its line or column, by the preprocessor or the compiler, makes a string
// of its argument (__STRING, C10_STRINGIZE, macros of the facade and of the emulator), or looks for
// files by a name that lex does not know as one.
constexpr std::array<std::string_view, 13> kTellsPlace = {
    "_LINE",    "_COLUMN", "source_location", "ASSERT",  "assert", "WARN", "warn",
    "CubDebug", "__has_",  "STRING",          "Stringi", "MC_EMU", "MC_AT"};
constexpr std::array<std::string_view, 20> kOfGlog = {
    "CHECK",     "CHECK_EQ",       "CHECK_NE",  "CHECK_LT",  "CHECK_LE",
    "CHECK_GT",  "CHECK_GE",       "DCHECK",    "DCHECK_EQ", "DCHECK_NE",
    "DCHECK_LT", "DCHECK_LE",      "DCHECK_GT", "DCHECK_GE", "CHECK_NOTNULL",
    "LOG",       "DCHECK_NOTNULL", "VLOG",      "DLOG",      "LOG_IF"};

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool tells_place(std::string_view word) {
  if (word == "static_assert" || word == "_Static_assert") return false;  // In no library.
  const auto in_word = [&](std::string_view part) { return holds(word, part); };
  return std::ranges::any_of(kTellsPlace, in_word) ||
         std::ranges::find(kOfGlog, word) != kOfGlog.end();
}

bool has_rare_text(std::string_view source) {
  const auto in_source = [&](std::string_view part) { return holds(source, part); };
  if (std::ranges::any_of(kRareTexts, in_source) || holds(source, {"\0", 1}) ||
      holds(source, "\\\t") || source.ends_with('\\')) {
    return true;
  }
  for (size_t i = source.find('\r'); i != std::string_view::npos; i = source.find('\r', i + 1)) {
    if (i + 1 == source.size() || source[i + 1] != '\n') return true;
  }
  return false;
}

bool is_closed(std::string_view literal) {
  const size_t open = literal.find_first_of("\"'");
  if (literal.substr(0, open).ends_with('R')) {
    const size_t body = literal.find('(', open);
    const std::string closer =
        ")" + std::string(literal.substr(open + 1, body - open - 1)) + literal[open];
    return literal.size() > body + closer.size() && literal.ends_with(closer);
  }
  if (literal.size() < open + 2 || literal.back() != literal[open]) return false;
  const size_t last = literal.find_last_not_of('\\', literal.size() - 2);
  return (literal.size() - 2 - last) % 2 == 0;  // The quote is no escaped one.
}

bool is_closed_comment(std::string_view comment) {
  return !comment.starts_with("/*") || (comment.size() >= 4 && comment.ends_with("*/"));
}

// A backslash before a line end, and no more.
bool only_splices(std::string_view space) {
  size_t i = 0;
  while (i < space.size() && space[i] == '\\') i += space.substr(i, 2) == "\\\r" ? 3 : 2;
  return i >= space.size();
}

// What has been read since the last token.
struct Gap {
  bool is_there = false;
  bool has_space = false;  // A comment or a blank, besides splices.
  bool ends_directive = false;

  void add(std::string_view text, const Token& token) {
    is_there = true;
    has_space |= token.kind == Kind::kComment || !only_splices(text);
    ends_directive |= !token.in_directive;
  }
};

// Whether this token makes its layout, or how it is cut, uncertain.
bool is_uncertain(std::string_view source, const Token& token, const Gap& gap, bool opens_directive,
                  const Token* before) {
  const std::string_view text = lex::text_of(source, token);
  if (gap.is_there && !gap.has_space) return true;  // Joined with the last one, to a compiler.
  switch (token.kind) {
    case Kind::kUnknown:
      return true;
    case Kind::kIdentifier: {
      const bool is_suffix = before != nullptr && !gap.is_there &&
                             (before->kind == Kind::kString || before->kind == Kind::kCharacter);
      const bool is_line_directive = before != nullptr && token.in_directive && text == "line" &&
                                     lex::text_of(source, *before) == "#";
      return is_suffix || is_line_directive || holds(text, "\\") || tells_place(text);
    }
    case Kind::kString:
    case Kind::kCharacter:
      return !is_closed(text);
    case Kind::kNumber: {
      const bool is_marker = before != nullptr && token.in_directive && !gap.ends_directive &&
                             lex::text_of(source, *before) == "#";  // # 12 "file"
      return is_marker || holds(text, "'");
    }
    case Kind::kPunctuator:
      // # makes a string of an argument; ## makes names, perhaps those that are looked for here.
      return token.in_directive && !opens_directive && (text == "#" || text == "##");
    default:
      return false;
  }
}

constexpr std::string_view kName = "TORCH_EXTENSION_NAME";
constexpr std::string_view kModule = "PYBIND11_MODULE";

bool is_identifier(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Of an extension's name.
enum class Use { kNone, kBinds, kOtherwise };

Use use_in(std::string_view source, const std::string& name) {
  std::vector<Token> tokens = lex::tokenize(source);
  std::erase_if(tokens, lex::is_trivia);
  const auto word = [&](size_t i) {
    return i < tokens.size() ? lex::text_of(source, tokens[i]) : std::string_view();
  };
  Use use = Use::kNone;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (word(i) == kModule && word(i + 1) == "(" && word(i + 2) == kName) {
      use = Use::kBinds;
      i += 2;
    } else if (word(i) == kModule || word(i) == kName || holds(word(i), "PyInit") ||
               (tokens[i].in_directive && (word(i) == name || word(i) == "##"))) {
      return Use::kOtherwise;
    }
  }
  return use;
}

}  // namespace

std::optional<std::string> canonical_form(std::string_view source, Lines lines) {
  if (has_rare_text(source)) return std::nullopt;
  const std::vector<Token> tokens = lex::tokenize(source);
  std::string form;
  form.reserve(source.size() + 2 * tokens.size());
  Gap gap{.is_there = true, .has_space = true, .ends_directive = true};
  const Token* before = nullptr;
  bool follows_opening = false;  // The # of a directive.
  for (const Token& token : tokens) {
    const std::string_view text = lex::text_of(source, token);
    if (lex::is_trivia(token)) {
      if (token.kind == Kind::kComment && !is_closed_comment(text)) return std::nullopt;
      gap.add(text, token);
      continue;
    }
    const bool opens = token.in_directive && gap.ends_directive;
    if (is_uncertain(source, token, gap, opens, before)) return std::nullopt;
    // Lengths tell where a token ends, so nothing in it can look like a border.
    if (lines == Lines::kMatter) form += std::to_string(token.line) + '@';
    form += std::to_string(text.size());
    const bool is_apart = token.in_directive && gap.is_there && !follows_opening;
    form += opens ? '#' : !token.in_directive ? ':' : is_apart ? '_' : '.';
    form += text;
    before = &token;
    follows_opening = opens;
    gap = {};
  }
  return form;
}

bool is_name_free(const Extension& extension, const std::vector<std::string>& flags) {
  const auto mentions = [](const std::string& flag) { return holds(flag, kName); };
  if (std::ranges::any_of(flags, mentions) || !is_identifier(extension.name)) return false;
  Use use = extension.functions.empty() ? Use::kNone : Use::kBinds;
  const auto read = [&](std::string_view text) {
    use = std::max(use, use_in(text, extension.name));
  };
  std::ranges::for_each(extension.cpp_sources, read);
  std::ranges::for_each(extension.cuda_sources, read);
  for (const SourceFile& file : extension.files) read(file.text);
  return use == Use::kBinds;
}

}  // namespace mc::compile
