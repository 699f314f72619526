// SPDX-License-Identifier: Apache-2.0
//
// Lexer: the words of PTX's text, one at a time.
//
// A word is a run of letters, digits and `_ $ % .` (with `::` inside, as in `.L2::cache_hint`), a
// string with its quotes, or one other character. Comments are skipped. The text must outlive the
// tokens, which are views of it.
#ifndef MC_PTX_LEXER_H_
#define MC_PTX_LEXER_H_

#include <cstddef>
#include <string_view>

namespace mc::ptx {

struct Token {
  std::string_view text;  // Empty at the end.
  int line = 0;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  // The next token, which stays.
  const Token& peek() const { return token_; }
  // The character that follows the next token directly or after blanks, 0 at the end.
  char character_after() const;
  Token next();
  // Skips the rest of the line of the last token.
  void skip_line(int line);

 private:
  void advance();
  void skip_blanks();
  size_t word_end() const;

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  Token token_;
};

}  // namespace mc::ptx

#endif  // MC_PTX_LEXER_H_
