// SPDX-License-Identifier: Apache-2.0
//
// The needs of a reader of C++ text beyond tokens: the tokens that matter, cut into regions, with
// their brackets matched; scopes; and kernel launches.  Everything stays an index into `tokens`,
// so a finding always knows its place in the source.
//
// A region is either the text outside of all preprocessor directives, or one directive: a macro's
// body is looked at like other code, but brackets and statements do not reach across its border.
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

// The text of the token at `i`, or "" if there is none: neighbours need no bounds check.
inline std::string_view text_at(std::string_view source, const Code& code, std::size_t i) {
  return i < code.tokens.size() ? text_of(source, code.tokens[i]) : std::string_view();
}

// Words that C++ reserves and that can stand before an expression, so that `return (f)` is no call.
bool is_statement_keyword(std::string_view word);

// The kind of braces a token stands in.
enum class Scope : std::uint8_t {
  kNamespace,  // No braces, or only those of namespaces and extern "C".
  kHost,
  kDevice,  // In a function marked __global__ or __device__, and not __host__.
};

// The scope of each token; tokens of a directive are taken to be in a host function.
std::vector<Scope> scopes_of(std::string_view source, const Code& code);

// K<T><<<grid, block>>>(arguments): all as indices of tokens.  The callee is [callee, open).
struct Launch {
  std::size_t callee = 0;
  std::size_t open = 0;              // <<<
  std::size_t close = 0;             // >>>
  std::size_t parenthesis_open = 0;  // Directly after `close`.
  std::size_t parenthesis_close = 0;
};

// The launches in the region, in the order of their `<<<`.  What looks like a launch but has no
// callee, no `>>>` or no arguments is left out.
std::vector<Launch> launches_in(std::string_view source, const Code& code);

}  // namespace mc::lex

#endif  // MC_LEX_CODE_H_
