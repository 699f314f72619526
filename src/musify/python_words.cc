// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include "musify/words.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;

constexpr std::array<std::string_view, 20> kLongOperators = {
    "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", ":=",
    "->",  "+=",  "-=",  "*=",  "/=",  "|=", "&=", "**", "//", "%="};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

bool is_string_prefix(std::string_view name) {
  return name.size() <= 2 && name.find_first_not_of("rRbBuUfFtT") == std::string_view::npos;
}

// Splits Python text into words.  It tracks the depth of brackets, because line breaks inside
// brackets are not words.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Word> read() {
    while (at_ < text_.size()) read_one();
    return std::move(words_);
  }

 private:
  void read_one() {
    const char c = text_[at_];
    if (c == '\n') return read_line_end();
    if (c == '#') return skip_comment();
    if (c == '\\' && at_ + 1 < text_.size()) {
      at_ += 2;
      return;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
      return;
    }
    if (c == '"' || c == '\'') return read_string(0);
    if (is_digit(c)) return read_run(Kind::kNumber);
    if (is_name_byte(c)) return read_name();
    read_operator();
  }

  void read_line_end() {
    if (depth_ == 0)
      add(Kind::kNewline, 1);
    else
      ++at_;
  }

  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void read_run(Kind kind) {
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_name_byte(text_[end]) || (kind == Kind::kNumber && text_[end] == '.'))) {
      ++end;
    }
    add(kind, end - at_);
  }

  void read_name() {
    std::size_t end = at_;
    while (end < text_.size() && is_name_byte(text_[end])) ++end;
    const bool is_prefix = end < text_.size() && (text_[end] == '"' || text_[end] == '\'') &&
                           is_string_prefix(text_.substr(at_, end - at_));
    if (is_prefix) return read_string(end - at_);
    add(Kind::kName, end - at_);
  }

  void read_string(std::size_t prefix_size) {
    const std::size_t open = at_ + prefix_size;
    const std::string_view quote =
        text_.substr(open, text_.substr(open, 3) == std::string(3, text_[open]) ? 3 : 1);
    std::size_t end = open + quote.size();
    while (end < text_.size() && text_.substr(end, quote.size()) != quote) {
      if (quote.size() == 1 && text_[end] == '\n') break;  // The literal is unterminated.
      end += text_[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, text_.size());
    Word word;
    word.kind = Kind::kString;
    word.content = open + quote.size();
    word.text = text_.substr(word.content, end - std::min(word.content, end));
    word.python_prefix = text_.substr(at_, prefix_size);
    const bool is_closed = text_.substr(end, quote.size()) == quote;
    word.offset = at_;
    word.size = end + (is_closed ? quote.size() : 0) - at_;
    at_ = word.end();
    words_.push_back(std::move(word));
  }

  void read_operator() {
    const char c = text_[at_];
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    for (const std::string_view one : kLongOperators) {
      if (text_.substr(at_, one.size()) == one) return add(Kind::kOther, one.size());
    }
    add(Kind::kOther, 1);
  }

  void add(Kind kind, std::size_t size) {
    Word word;
    word.kind = kind;
    word.text = text_.substr(at_, size);
    word.offset = at_;
    word.size = size;
    words_.push_back(std::move(word));
    at_ += size;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::vector<Word> words_;
};

// Sets the keyword argument of each word: in flags=["-O3"], "-O3" belongs to `flags`.
void add_keywords(std::vector<Word>& words) {
  struct Bracket {
    std::string outside;  // The keyword to which the bracket itself belongs.
    std::string base;     // The keyword of items without one of their own.
  };
  std::vector<Bracket> stack;
  std::string current;
  for (std::size_t i = 0; i < words.size(); ++i) {
    Word& word = words[i];
    if (closes_bracket(words, i) && !stack.empty()) {
      current = stack.back().outside;
      stack.pop_back();
    }
    const bool is_argument = i > 0 && (is_mark(words, i - 1, "(") || is_mark(words, i - 1, ","));
    if (word.kind == Kind::kName && is_argument && is_mark(words, i + 1, "=") && !stack.empty()) {
      current = word.text;
      continue;
    }
    word.keyword = current;
    if (opens_bracket(words, i)) {
      stack.push_back({current, word.text == "(" ? "" : current});
      current = stack.back().base;
    }
    if (is_mark(words, i, ",") && !stack.empty()) current = stack.back().base;
    if (word.kind == Kind::kNewline) current.clear();
  }
}

}  // namespace

std::vector<Word> python_words(std::string_view text) {
  std::vector<Word> words = Reader(text).read();
  add_keywords(words);
  return words;
}

}  // namespace mc::musify
