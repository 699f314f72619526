// SPDX-License-Identifier: Apache-2.0
#include "reward/tokens.h"

namespace mc::reward {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

template <typename Predicate>
size_t run_length(std::string_view text, size_t begin, Predicate belongs) {
  size_t end = begin;
  while (end < text.size() && belongs(text[end])) ++end;
  return end - begin;
}

}  // namespace

size_t estimate_tokens(std::string_view text) {
  constexpr size_t kLettersPerToken = 3;
  size_t tokens = 0;
  size_t at = 0;
  while (at < text.size()) {
    if (const size_t letters = run_length(text, at, is_letter)) {
      tokens += (letters + kLettersPerToken - 1) / kLettersPerToken;
      at += letters;
    } else if (const size_t spaces = run_length(text, at, [](char c) { return c == ' '; })) {
      if (spaces > 1) ++tokens;
      at += spaces;
    } else {
      ++tokens;
      ++at;
    }
  }
  return tokens;
}

}  // namespace mc::reward
