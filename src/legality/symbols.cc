// SPDX-License-Identifier: Apache-2.0
#include "legality/symbols.h"

#include <algorithm>
#include <cstddef>

#include "core/demangle.h"
#include "legality/static_rules.h"
#include "lex/token.h"

namespace mc::legality {
namespace {

// One element of a pattern (a character or [A-Z]): its size, and whether it matches `c`.
struct Element {
  std::size_t size = 1;
  bool is_match = false;
};

Element match_element(std::string_view pattern, char c) {
  constexpr std::string_view kCapital = "[A-Z]";
  if (pattern.substr(0, kCapital.size()) == kCapital) {
    return {kCapital.size(), c >= 'A' && c <= 'Z'};
  }
  return {1, !pattern.empty() && pattern.front() == c};
}

// A symbol's name in PyTorch: the facade's entry of an operator, mc_at_op_sum_dim_IntList
// (device/facade/include/mc_at/abi.h), is at::_ops::sum_dim_IntList::call.
std::string name_of(std::string_view mangled) {
  constexpr std::string_view kFacade = "mc_at_op_";
  const std::string_view symbol = mangled.substr(0, mangled.find('@'));
  if (!symbol.starts_with(kFacade)) return demangle(symbol);
  return "at::_ops::" + std::string(symbol.substr(kFacade.size())) + "::call";
}

// True if the symbol is the dispatch entry of an allowed operator, such as
// `at::_ops::split_Tensor::call`: the operator's name, and "_" with the overload's name where it
// has one.
bool is_allowed_operator(const Policy& policy, std::string_view name) {
  constexpr std::string_view kEntries = "at::_ops::";
  if (name.substr(0, kEntries.size()) != kEntries) return false;
  name.remove_prefix(kEntries.size());
  const std::size_t end = name.find("::call");
  if (end == std::string_view::npos) return false;
  name = name.substr(0, end);
  if (policy.operators.contains(name)) return true;
  for (std::size_t i = name.find('_'); i != std::string_view::npos; i = name.find('_', i + 1)) {
    if (policy.operators.contains(name.substr(0, i)) &&
        policy.overloads.contains(name.substr(i + 1))) {
      return true;
    }
  }
  return false;
}

}  // namespace

namespace {

// The operator with its overload: "zeros_like" of "at::_ops::zeros_like::call", "add_Tensor".
std::string_view operator_of(std::string_view symbol) {
  constexpr std::string_view kOperators = "at::_ops::";
  if (!symbol.starts_with(kOperators)) return "";
  symbol.remove_prefix(kOperators.size());
  return symbol.substr(0, symbol.find("::"));
}

// The location of the first call x(...) in the sources; empty where there is none.
task::SourceLocation call_of(std::string_view name, const std::vector<NativeSource>& sources) {
  for (const NativeSource& source : sources) {
    const lex::Token* callee = nullptr;
    const std::vector<lex::Token> tokens = lex::tokenize(source.text);
    for (const lex::Token& token : tokens) {
      if (lex::is_trivia(token)) continue;
      const std::string_view text = lex::text_of(source.text, token);
      if (callee != nullptr && text == "(") {
        return {source.name, static_cast<int>(callee->line), static_cast<int>(callee->column), ""};
      }
      callee = token.kind == lex::Kind::kIdentifier && text == name ? &token : nullptr;
    }
  }
  return {};
}

// True for pybind11's own import of collections.abc, with which it recognises a mapping, in a
// library whose sources import nothing: they have no word for it, nor a macro that could form one.
bool is_import_of_pybind11(std::string_view name, const std::vector<NativeSource>& sources) {
  if (name != "PyImport_ImportModule" || sources.empty()) return false;
  return std::ranges::none_of(sources, [](const NativeSource& source) {
    const std::vector<lex::Token> tokens = lex::tokenize(source.text);
    return std::ranges::any_of(tokens, [&](const lex::Token& token) {
      const std::string_view text = lex::text_of(source.text, token);
      return !lex::is_trivia(token) && (text == "##" || text == "%:%:" || text == "import" ||
                                        text.find("PyImport") != std::string_view::npos);
    });
  });
}

// A finding with the name that the author called: of "sum_dim_IntList" the longest of
// "sum_dim_IntList", "sum_dim" and "sum" that the sources call.
task::RuleFinding finding_of(const SymbolRule& rule, const std::string& symbol,
                             const std::vector<NativeSource>& sources) {
  std::string_view name = operator_of(symbol);
  while (!name.empty()) {
    if (const task::SourceLocation location = call_of(name, sources); location.line > 0) {
      return {rule.id, "torch::" + std::string(name) + ": " + rule.message, location};
    }
    const std::size_t end = name.rfind('_');
    name = name.substr(0, end == std::string_view::npos ? 0 : end);
  }
  const char* how =
      operator_of(symbol).empty() ? "" : " (an expression such as a + b calls one too)";
  return {rule.id, symbol.substr(0, 200) + how + ": " + rule.message, {}};
}

}  // namespace

bool matches_any(std::string_view text, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return matches_pattern(text, pattern); });
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0;
  std::size_t p = 0;
  // The index after the last `*`, and where its match began.
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
      continue;
    }
    const Element element = match_element(pattern.substr(p), text[t]);
    if (element.is_match) {
      p += element.size;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<task::RuleFinding> check_symbols(const Policy& policy,
                                             const std::vector<std::string>& mangled,
                                             const std::vector<NativeSource>& sources) {
  std::vector<task::RuleFinding> findings;
  for (const std::string& symbol : mangled) {
    const std::string name = name_of(symbol);
    if (is_allowed_operator(policy, name) || is_import_of_pybind11(name, sources)) continue;
    for (const SymbolRule& rule : policy.symbol_rules) {
      if (findings.size() >= kFindingsMax) return findings;
      if (matches_any(name, rule.patterns)) {
        findings.push_back(finding_of(rule, name, sources));
      }
    }
  }
  return findings;
}

}  // namespace mc::legality
