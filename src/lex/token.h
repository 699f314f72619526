// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer for C++17 and CUDA source, for code that analyses or edits such a text without a full
// parser: launch rewriting, static rules, Musify, mutations.  It does not preprocess: macros are
// not expanded, and skipped #if branches are tokens, too.
//
// - It never fails. An unterminated literal ends with its line, an unterminated comment or raw
//   string with the file, and a byte that is not C++ becomes a token of kind kUnknown.
// - The concatenated texts of the tokens are the source, byte for byte: white space and comments
//   are tokens.
// - Time and memory are linear in the size of the source.
// - `<<<` and `>>>` of a kernel launch are separate tokens (also spelled `<< <` and `>> >`, as
//   nvcc accepts them); the `>>>` of nested templates and the `<<<` of `operator<<<T>` are not.
//   Other runs of `>` are tokenized like in C++, longest first; the caller has to recognise
//   template closers.
// Example:
//   const std::vector<Token> tokens = tokenize(source);
//   for (const Token& token : tokens) if (!is_trivia(token)) use(text_of(source, token));
#ifndef MC_LEX_TOKEN_H_
#define MC_LEX_TOKEN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mc::lex {

enum class Kind : std::uint8_t {
  kWhitespace,  // Spaces, line ends, and a backslash before a line end.
  kComment,
  kIdentifier,  // Includes keywords.
  kNumber,      // A preprocessing number: 1'000u, 0x1p-3f, .5e+1, 1.2.3.
  kString,      // Includes the prefix and raw strings; a user-defined suffix is an identifier.
  kCharacter,
  kHeader,  // <name> or "name" after #include.
  kPunctuator,
  kLaunchOpen,   // <<<
  kLaunchClose,  // >>>
  kUnknown,      // A byte that cannot begin a C++ token, such as NUL, @ or invalid UTF-8.
};

struct Token {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t line = 1;    // The line of its first byte, from 1.
  std::uint32_t column = 1;  // The column in bytes, from 1.
  Kind kind = Kind::kUnknown;
  bool in_directive = false;  // True from the # to before the line break that ends the directive.
};

// The bound on the size of a source.
inline constexpr std::size_t kSourceBytesMax = std::size_t{1} << 30;

// REQUIRES: source.size() <= kSourceBytesMax.
std::vector<Token> tokenize(std::string_view source);

inline std::string_view text_of(std::string_view source, const Token& token) {
  return source.substr(token.offset, token.size);
}

inline bool is_trivia(const Token& token) {
  return token.kind == Kind::kWhitespace || token.kind == Kind::kComment;
}

// The token's text without line splices (a backslash before a line break), which C++ removes before
// it recognises identifiers; the unchanged text of raw strings, where C++ does not.
std::string spelling_of(std::string_view source, const Token& token);

}  // namespace mc::lex

#endif  // MC_LEX_TOKEN_H_
