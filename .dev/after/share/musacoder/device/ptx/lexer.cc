// SPDX-License-Identifier: Apache-2.0
#include "ptx/lexer.h"

#include <algorithm>

namespace mc::ptx {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f'; }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

}  // namespace

Token Lexer::next() {
  const Token token = token_;
  advance();
  return token;
}

void Lexer::skip_line(int line) {
  while (!token_.text.empty() && token_.line == line) advance();
}

char Lexer::character_after() const {
  size_t at = at_;
  while (at < text_.size() && is_blank(text_[at])) ++at;
  return at < text_.size() ? text_[at] : '\0';
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const std::string_view rest = text_.substr(at_);
    size_t skip = 0;
    if (is_blank(rest[0])) {
      skip = 1;
    } else if (rest.starts_with("//")) {
      skip = std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("/*")) {
      const size_t end = rest.find("*/", 2);
      skip = end == std::string_view::npos ? rest.size() : end + 2;
    }
    if (skip == 0) return;
    line_ += static_cast<int>(std::count(rest.begin(), rest.begin() + skip, '\n'));
    at_ += skip;
  }
}

size_t Lexer::word_end() const {
  // Directives may touch one another: `.reg.b32`.
  const bool is_directive = text_[at_] == '.';
  size_t end = at_;
  while (end < text_.size()) {
    if (is_directive && text_[end] == '.' && end > at_) break;
    if (is_word(text_[end])) {
      ++end;
    } else if (text_.substr(end, 2) == "::" && end > at_) {
      end += 2;
    } else {
      break;
    }
  }
  return end;
}

void Lexer::advance() {
  skip_blanks();
  token_ = {{}, line_};
  if (at_ >= text_.size()) return;
  size_t end = at_ + 1;
  if (is_word(text_[at_])) {
    end = word_end();
  } else if (text_[at_] == '"') {
    const size_t quote = text_.find('"', at_ + 1);
    end = quote == std::string_view::npos ? text_.size() : quote + 1;
    line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
  }
  token_.text = text_.substr(at_, end - at_);
  at_ = end;
}

}  // namespace mc::ptx
