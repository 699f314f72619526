// SPDX-License-Identifier: Apache-2.0
//
// Structure of C++ text beyond tokens: tokens without trivia, divided into regions, with matched
// brackets; scopes; and kernel launches.  Everything is an index into `tokens`, so every result has
// a location in the source.
//
// A region is either the text outside of all preprocessor directives, or one directive: a macro's
// body is analysed like other code, but brackets and statements do not cross its border.
#ifndef MC_LEX_CODE_H_
#define MC_LEX_CODE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lex/token.h"

namespace mc::lex {

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// One region.  `partners[i]` is the index of the bracket that matches the one at i, for (), [], {}
// and <<< >>>; kNone for other tokens and for brackets without a partner.
struct Code {
  std::vector<Token> tokens;  // No trivia.
  std::vector<std::size_t> partners;
  bool is_directive = false;
};

// The region outside of directives first, then the directives in their order.
std::vector<Code> regions_of(std::string_view source, const std::vector<Token>& tokens);

// The text of the token at `i`, or "" if there is none, so that access to neighbours needs no
// bounds check.
inline std::string_view text_at(std::string_view source, const Code& code, std::size_t i) {
  return i < code.tokens.size() ? text_of(source, code.tokens[i]) : std::string_view();
}

// True for a reserved word of C++ that can precede an expression, so that `return (f)` is not a
// call.
bool is_statement_keyword(std::string_view word);

// The kind of braces around a token.
enum class Scope : std::uint8_t {
  kNamespace,  // No braces, or only those of namespaces and extern "C".
  kHost,
  kDevice,  // A function marked __global__ or __device__, and not __host__.
};

// The scope of each token; tokens of a directive are taken to be in a host function.
std::vector<Scope> scopes_of(std::string_view source, const Code& code);

// A launch K<T><<<grid, block>>>(arguments), as indices of tokens.  The callee is [callee, open).
struct Launch {
  std::size_t callee = 0;
  std::size_t open = 0;              // <<<
  std::size_t close = 0;             // >>>
  std::size_t parenthesis_open = 0;  // Directly after `close`.
  std::size_t parenthesis_close = 0;
};

// The launches in the region, in the order of their `<<<`.  A launch without a callee, a `>>>` or
// arguments is left out.
std::vector<Launch> launches_in(std::string_view source, const Code& code);

}  // namespace mc::lex

#endif  // MC_LEX_CODE_H_
