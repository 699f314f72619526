// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation for launches.  `<<<` is certain; its callee is found by walking back over the
// postfix expression before it: a name with its template arguments and its `::` chain, or a
// bracketed expression, with calls, subscripts and member accesses before it.  Template arguments
// are matched by counting `<` and `>` outside of brackets, which C++ makes safe: a comparison by
// `>` inside template arguments must be in parentheses.
#include "lex/code.h"

#include <algorithm>
#include <array>

namespace mc::lex {
namespace {

// Longer template arguments are not recognised; this keeps the walk linear.
constexpr std::size_t kTemplateTokensMax = 1024;

constexpr std::array<std::string_view, 22> kStatementKeywords = {
    "return", "else",     "do",        "case",     "goto",   "throw", "sizeof", "if",
    "while",  "for",      "switch",    "new",      "delete", "and",   "or",     "not",
    "const",  "co_yield", "co_return", "typename", "auto",   "void"};

char closer_of(const Token& token, char c) {
  if (token.kind == Kind::kLaunchOpen) return 'L';
  if (token.kind != Kind::kPunctuator || token.size != 1) return '\0';
  return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '\0';
}

char closer_at(const Token& token, char c) {
  if (token.kind == Kind::kLaunchClose) return 'L';
  if (token.kind != Kind::kPunctuator || token.size != 1) return '\0';
  return c == ')' || c == ']' || c == '}' ? c : '\0';
}

struct OpenBracket {
  std::size_t index = 0;
  char closer = '\0';
};

// Matches brackets.  A closer without an opener, or of another kind, is ignored; a `<<<` without
// `>>>` is dropped when the brackets around it close.
void match_brackets(std::string_view source, Code& code) {
  code.partners.assign(code.tokens.size(), kNone);
  std::vector<OpenBracket> open;
  for (std::size_t i = 0; i < code.tokens.size(); ++i) {
    const char c = source[code.tokens[i].offset];
    if (const char closer = closer_of(code.tokens[i], c)) open.push_back({i, closer});
    const char closer = closer_at(code.tokens[i], c);
    if (closer == '\0') continue;
    while (!open.empty() && open.back().closer == 'L' && closer != 'L') open.pop_back();
    if (open.empty() || open.back().closer != closer) continue;
    code.partners[i] = open.back().index;
    code.partners[open.back().index] = i;
    open.pop_back();
  }
}

bool is_name(std::string_view source, const Code& code, std::size_t i) {
  return i < code.tokens.size() && code.tokens[i].kind == Kind::kIdentifier &&
         !is_statement_keyword(text_at(source, code, i));
}

// The index of the `<` that the template closer at `i` (`>` or `>>`) belongs to, or kNone.
std::size_t angle_open(std::string_view source, const Code& code, std::size_t i) {
  int depth = 0;
  for (std::size_t steps = 0; steps < kTemplateTokensMax; ++steps) {
    const std::string_view text = text_at(source, code, i);
    if (text == ")" || text == "]" || text == "}") {
      i = code.partners[i];
      if (i == kNone) return kNone;
    } else if (text == "(" || text == "[" || text == "{" || text == ";") {
      return kNone;
    } else if (text == ">" || text == ">>") {
      depth += static_cast<int>(text.size());
    } else if (text == "<" && --depth <= 0) {
      return depth == 0 ? i : kNone;
    }
    if (i == 0) return kNone;
    --i;
  }
  return kNone;
}

// The begin of the name that ends at `i`, with its template arguments, or kNone.
std::size_t name_begin(std::string_view source, const Code& code, std::size_t i) {
  if (is_name(source, code, i)) return i;
  const std::string_view text = text_at(source, code, i);
  if (text != ">" && text != ">>") return kNone;
  const std::size_t open = angle_open(source, code, i);
  return open != kNone && open > 0 && is_name(source, code, open - 1) ? open - 1 : kNone;
}

// The begin of the name, bracketed expression, call or subscript that ends at `i`, or kNone.
std::size_t postfix_begin(std::string_view source, const Code& code, std::size_t i) {
  for (;;) {
    const std::string_view text = text_at(source, code, i);
    if (text != ")" && text != "]") return name_begin(source, code, i);
    const std::size_t open = code.partners[i];
    if (open == kNone) return kNone;
    const bool has_base = open > 0 && (name_begin(source, code, open - 1) != kNone ||
                                       text_at(source, code, open - 1) == "]" ||
                                       (text == "]" && text_at(source, code, open - 1) == ")"));
    if (!has_base) return text == ")" ? open : kNone;
    i = open - 1;
  }
}

// Extends the name that begins at `begin` over the qualifiers, objects and `##` before it.
std::size_t callee_begin(std::string_view source, const Code& code, std::size_t begin) {
  while (begin != kNone && begin > 0) {
    const std::string_view before = text_at(source, code, begin - 1);
    if (before == "template") {
      --begin;
    } else if (before == "::") {
      const std::size_t scope = begin > 1 ? postfix_begin(source, code, begin - 2) : kNone;
      begin = scope == kNone ? begin - 1 : scope;
      if (scope == kNone) return begin;
    } else if (before == "." || before == "->" || before == "##") {
      begin = begin > 1 ? postfix_begin(source, code, begin - 2) : kNone;
    } else {
      return begin;
    }
  }
  return begin;
}

// Properties of the declaration before a brace that determine the scope that the brace opens.
struct Head {
  bool is_namespace = false;
  bool is_extern = false;
  bool is_extern_language = false;
  bool is_device = false;
  bool is_host = false;
};

void read_head(Head& head, std::string_view text, Kind kind) {
  if (text == "namespace") head.is_namespace = true;
  if (kind == Kind::kString && head.is_extern) head.is_extern_language = true;
  if (text == "extern") head.is_extern = true;
  if (text == "__global__" || text == "__device__") head.is_device = true;
  if (text == "__host__") head.is_host = true;
}

Scope scope_inside(const Head& head, Scope outer) {
  if (outer == Scope::kNamespace && (head.is_namespace || head.is_extern_language)) return outer;
  if (head.is_device && !head.is_host) return Scope::kDevice;
  return outer == Scope::kDevice ? outer : Scope::kHost;
}

}  // namespace

bool is_statement_keyword(std::string_view word) {
  return std::find(kStatementKeywords.begin(), kStatementKeywords.end(), word) !=
         kStatementKeywords.end();
}

std::vector<Code> regions_of(std::string_view source, const std::vector<Token>& tokens) {
  std::vector<Code> regions(1);
  bool was_in_directive = false;
  for (const Token& token : tokens) {
    if (token.in_directive && !was_in_directive) regions.emplace_back().is_directive = true;
    was_in_directive = token.in_directive;
    if (is_trivia(token)) continue;
    (token.in_directive ? regions.back() : regions.front()).tokens.push_back(token);
  }
  for (Code& code : regions) match_brackets(source, code);
  return regions;
}

std::vector<Scope> scopes_of(std::string_view source, const Code& code) {
  std::vector<Scope> scopes(code.tokens.size(), Scope::kHost);
  if (code.is_directive) return scopes;
  std::vector<Scope> stack = {Scope::kNamespace};
  Head head;
  for (std::size_t i = 0; i < code.tokens.size(); ++i) {
    const std::string_view text = text_at(source, code, i);
    if (text == "}" && stack.size() > 1) stack.pop_back();
    scopes[i] = stack.back();
    if (text == "{") stack.push_back(scope_inside(head, stack.back()));
    if (text == "{" || text == "}" || text == ";") {
      head = Head{};
    } else {
      read_head(head, text, code.tokens[i].kind);
    }
  }
  return scopes;
}

std::vector<Launch> launches_in(std::string_view source, const Code& code) {
  std::vector<Launch> launches;
  for (std::size_t i = 1; i < code.tokens.size(); ++i) {
    if (code.tokens[i].kind != Kind::kLaunchOpen || code.partners[i] == kNone) continue;
    Launch launch;
    launch.open = i;
    launch.close = code.partners[i];
    launch.parenthesis_open = launch.close + 1;
    if (text_at(source, code, launch.parenthesis_open) != "(") continue;
    launch.parenthesis_close = code.partners[launch.parenthesis_open];
    launch.callee = callee_begin(source, code, postfix_begin(source, code, i - 1));
    if (launch.parenthesis_close != kNone && launch.callee != kNone) launches.push_back(launch);
  }
  return launches;
}

}  // namespace mc::lex
