// SPDX-License-Identifier: Apache-2.0
#include "legality/symbols.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>

#include "legality/static_rules.h"

namespace mc::legality {
namespace {

constexpr std::size_t kSymbolBytesMax = 4096;

// The demangled name, or the symbol itself where it is no C++ name.
std::string demangled(const std::string& symbol) {
  const std::string name = symbol.substr(0, symbol.find('@'));
  if (name.size() > kSymbolBytesMax || name.compare(0, 2, "_Z") != 0) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

// The size of one element of the pattern (a character or [A-Z]) and whether it is `c`.
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

}  // namespace

bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;  // Behind the last `*`, and where it began to match.
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
                                             const std::vector<std::string>& mangled) {
  std::vector<task::RuleFinding> findings;
  for (const std::string& symbol : mangled) {
    const std::string name = demangled(symbol);
    for (const SymbolRule& rule : policy.symbol_rules) {
      if (findings.size() >= kFindingsMax) return findings;
      if (matches_any(name, rule.patterns) && !matches_any(name, rule.exceptions)) {
        findings.push_back({rule.id, name.substr(0, 200) + ": " + rule.message, {}});
      }
    }
  }
  return findings;
}

}  // namespace mc::legality
