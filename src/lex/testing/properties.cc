// SPDX-License-Identifier: Apache-2.0
#include "lex/testing/properties.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/check.h"
#include "lex/split.h"
#include "lex/token.h"

namespace mc::lex {
namespace {

void check_tokens(std::string_view source) {
  std::size_t offset = 0;
  std::size_t line = 1;
  std::size_t column = 1;
  for (const Token& token : tokenize(source)) {
    MC_CHECK(token.offset == offset && token.size > 0);
    MC_CHECK(token.line == line && token.column == column);
    for (const char c : text_of(source, token)) {
      line += c == '\n' ? 1 : 0;
      column = c == '\n' ? 1 : column + 1;
    }
    offset += token.size;
    (void)spelling_of(source, token);
  }
  MC_CHECK(offset == source.size());
}

void check_split(std::string_view source) {
  const Split split = split_cuda(source);
  if (!split.refusal.empty()) return;
  for (const std::string& side : {split.host, split.device}) {
    MC_CHECK(std::count(source.begin(), source.end(), '\n') ==
             std::count(side.begin(), side.end(), '\n'));
  }
}

}  // namespace

void check_properties(std::string_view source) {
  check_tokens(source);
  check_split(source);
}

}  // namespace mc::lex
