// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  Three passes, each linear:
//  1. scan() cuts the source at each token's end. Every `>` is a separate token, and `<<<` is a
//     kLaunchOpen unless `operator` precedes it.
//  2. launch_closers() determines the runs of `>` that close a launch.
//  3. glue() joins the remaining runs of `>` into `>>`, `>>=` and `>=`, and each closer into one
//     token.
// Each directive is separate: brackets and launches do not cross its borders.
#include "lex/token.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/utf8.h"
#include "lex/launch_closers.h"

namespace mc::lex {
namespace {

constexpr std::array<std::string_view, 3> kPunctuators3 = {"...", "->*", "<<="};
constexpr std::array<std::string_view, 20> kPunctuators2 = {
    "::", "->", "++", "--", "<<", "<=", "==", "!=", "&&", "||",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", ".*"};
constexpr std::string_view kPunctuators1 = "{}[]()<>;:?.+-*/%^&|~!=,#";
constexpr std::array<std::string_view, 4> kEncodings = {"u8", "u", "U", "L"};
constexpr std::size_t kRawDelimiterSizeMax = 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

char at(std::string_view s, std::size_t i) { return i < s.size() ? s[i] : '\0'; }

// The size of the line splice at `i` (a backslash, blanks, a line break), or 0.
std::size_t splice_size(std::string_view s, std::size_t i) {
  if (at(s, i) != '\\') return 0;
  std::size_t end = i + 1;
  // g++ accepts blanks after the backslash; the limit keeps the scan linear.
  while (end < s.size() && end - i <= 64 && (s[end] == ' ' || s[end] == '\t')) ++end;
  if (at(s, end) == '\r' && at(s, end + 1) == '\n') return end + 2 - i;
  return end < s.size() && s[end] == '\n' ? end + 1 - i : 0;
}

// The end of the word character at `i`, splices before it included, or `i` if there is none.
std::size_t skip_word_character(std::string_view s, std::size_t i) {
  std::size_t start = i;
  while (const std::size_t size = splice_size(s, start)) start += size;
  if (start >= s.size()) return i;
  if (is_word_byte(s[start])) return start + 1;
  if (static_cast<unsigned char>(s[start]) < 0x80) return i;
  const std::size_t length = first_character(s.substr(start)).num_bytes;
  return length == 0 ? i : start + length;
}

std::size_t end_of_word(std::string_view s, std::size_t i) {
  for (;;) {
    const std::size_t next = skip_word_character(s, i);
    if (next == i) return i;
    i = next;
  }
}

std::size_t end_of_number(std::string_view s, std::size_t i) {
  for (;;) {
    const char c = at(s, i);
    const char next = at(s, i + 1);
    if ((c == 'e' || c == 'E' || c == 'p' || c == 'P') && (next == '+' || next == '-')) {
      i += 2;
    } else if (c == '.' && i < s.size()) {
      ++i;
    } else if (c == '\'' && is_word_byte(next)) {
      i += 2;
    } else {
      const std::size_t end = skip_word_character(s, i);
      if (end == i) return i;
      i = end;
    }
  }
}

enum class LineEnds { kKeep, kSkip };

std::size_t end_of_whitespace(std::string_view s, std::size_t i, LineEnds line_ends) {
  while (i < s.size()) {
    if (const std::size_t size = splice_size(s, i)) {
      i += size;
    } else if (is_space(s[i]) && (line_ends == LineEnds::kSkip || s[i] != '\n')) {
      ++i;
    } else {
      break;
    }
  }
  return i;
}

std::size_t end_of_line_comment(std::string_view s, std::size_t i) {
  while (i < s.size() && s[i] != '\n') {
    const std::size_t size = splice_size(s, i);
    i += size == 0 ? 1 : size;
  }
  return i;
}

std::size_t end_of_block_comment(std::string_view s, std::size_t i) {
  const std::size_t end = s.find("*/", i + 2);
  return end == std::string_view::npos ? s.size() : end + 2;
}

// The end of the literal with its opening quote at `i`: after the closing quote or, without one,
// before the line break.
std::size_t end_of_quoted(std::string_view s, std::size_t i) {
  const char quote = s[i];
  ++i;
  while (i < s.size() && s[i] != '\n') {
    if (const std::size_t size = splice_size(s, i)) {
      i += size;
    } else if (s[i] == '\\' && i + 1 < s.size() && s[i + 1] != '\n') {
      i += 2;
    } else if (s[i++] == quote) {
      return i;
    }
  }
  return i;
}

// The end of the raw string whose quote, after R, is at `i`; 0 where there is no raw string.
std::size_t end_of_raw_string(std::string_view s, std::size_t i) {
  std::size_t open = i + 1;
  while (open < s.size() && open - i <= kRawDelimiterSizeMax && s[open] != '(' && s[open] != ')' &&
         s[open] != '\\' && !is_space(s[open])) {
    ++open;
  }
  if (at(s, open) != '(') return 0;
  const std::string closer = ")" + std::string(s.substr(i + 1, open - i - 1)) + "\"";
  const std::size_t end = s.find(closer, open);
  return end == std::string_view::npos ? s.size() : end + closer.size();
}

struct Cut {
  Kind kind = Kind::kUnknown;
  std::size_t end = 0;
};

// A string or character literal with its prefix, or a Cut of kind kUnknown if none starts at `i`.
Cut cut_literal(std::string_view s, std::size_t i) {
  const auto* const prefix = std::find_if(
      kEncodings.begin(), kEncodings.end(),
      [&](std::string_view encoding) { return s.substr(i, encoding.size()) == encoding; });
  std::size_t quote = prefix == kEncodings.end() ? i : i + prefix->size();
  if (at(s, quote) == 'R' && at(s, quote + 1) == '"') {
    if (const std::size_t end = end_of_raw_string(s, quote + 1)) return {Kind::kString, end};
    return {};
  }
  if (at(s, quote) == '"') return {Kind::kString, end_of_quoted(s, quote)};
  if (at(s, quote) == '\'') return {Kind::kCharacter, end_of_quoted(s, quote)};
  return {};
}

// The size of `<<<` or `<< <` at `i`, or 0.
std::size_t launch_open_size(std::string_view s, std::size_t i) {
  if (s.substr(i, 2) != "<<") return 0;
  std::size_t third = i + 2;
  while (third - i <= 64 && (at(s, third) == ' ' || at(s, third) == '\t')) ++third;
  return at(s, third) == '<' && at(s, third + 1) != '=' ? third + 1 - i : 0;
}

std::size_t punctuator_size(std::string_view s, std::size_t i) {
  if (s[i] == '>') return at(s, i + 1) == '=' ? 2 : 1;
  const auto starts_here = [&](std::string_view p) { return s.substr(i, p.size()) == p; };
  if (std::any_of(kPunctuators3.begin(), kPunctuators3.end(), starts_here)) return 3;
  if (std::any_of(kPunctuators2.begin(), kPunctuators2.end(), starts_here)) return 2;
  return kPunctuators1.find(s[i]) == std::string_view::npos ? 0 : 1;
}

// The state of the scanner between tokens.
struct ScanState {
  bool at_line_start = true;
  bool in_directive = false;
  bool after_hash = false;         // The directive's name comes next.
  bool header_comes_next = false;  // True after #include.
  bool after_operator = false;     // True after the keyword `operator`.
};

Cut cut_header(std::string_view s, std::size_t i) {
  const char closer = s[i] == '<' ? '>' : s[i] == '"' ? '"' : '\0';
  if (closer == '\0') return {};
  const std::size_t end = s.find_first_of(closer == '>' ? ">\n" : "\"\n", i + 1);
  if (end == std::string_view::npos || s[end] == '\n') return {};
  return {Kind::kHeader, end + 1};
}

Cut cut_punctuator(std::string_view s, std::size_t i, const ScanState& state) {
  if (!state.after_operator) {
    if (const std::size_t size = launch_open_size(s, i)) return {Kind::kLaunchOpen, i + size};
  }
  const std::size_t size = punctuator_size(s, i);
  return size == 0 ? Cut{Kind::kUnknown, i + 1} : Cut{Kind::kPunctuator, i + size};
}

Cut cut_token(std::string_view s, std::size_t i, const ScanState& state) {
  const LineEnds line_ends = state.in_directive ? LineEnds::kKeep : LineEnds::kSkip;
  const std::size_t space_end = end_of_whitespace(s, i, line_ends);
  if (space_end != i) return {Kind::kWhitespace, space_end};
  if (s.substr(i, 2) == "//") return {Kind::kComment, end_of_line_comment(s, i)};
  if (s.substr(i, 2) == "/*") return {Kind::kComment, end_of_block_comment(s, i)};
  if (state.header_comes_next) {
    if (const Cut header = cut_header(s, i); header.kind == Kind::kHeader) return header;
  }
  if (const Cut literal = cut_literal(s, i); literal.kind != Kind::kUnknown) return literal;
  if (is_digit(s[i]) || (s[i] == '.' && is_digit(at(s, i + 1)))) {
    return {Kind::kNumber, end_of_number(s, i)};
  }
  if (splice_size(s, i) == 0) {
    if (const std::size_t end = end_of_word(s, i); end != i) return {Kind::kIdentifier, end};
  }
  return cut_punctuator(s, i, state);
}

bool names_a_header(std::string_view directive) {
  return directive == "include" || directive == "include_next" || directive == "import";
}

void advance(ScanState& state, std::string_view text, Kind kind) {
  if (kind == Kind::kWhitespace || kind == Kind::kComment) {
    if (kind == Kind::kWhitespace && text.find('\n') != std::string_view::npos &&
        !state.in_directive) {
      state.at_line_start = true;
    }
    return;
  }
  const bool is_name = state.after_hash;
  state.after_hash = state.at_line_start && !state.in_directive && text == "#";
  state.in_directive = state.in_directive || state.after_hash;
  state.header_comes_next = is_name && names_a_header(text);
  state.after_operator = kind == Kind::kIdentifier && text == "operator";
  state.at_line_start = false;
}

bool directive_ends(std::string_view s, std::size_t i, const ScanState& state) {
  return state.in_directive && s[i] == '\n';
}

std::vector<Token> scan(std::string_view source) {
  std::vector<Token> tokens;
  ScanState state;
  std::uint32_t line = 1;
  std::size_t line_start = 0;
  std::size_t i = 0;
  while (i < source.size()) {
    if (directive_ends(source, i, state)) state = ScanState{};
    const Cut cut = cut_token(source, i, state);
    MC_CHECK(i < cut.end && cut.end <= source.size());
    const std::string_view text = source.substr(i, cut.end - i);
    advance(state, text, cut.kind);
    tokens.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(text.size()), line,
                      static_cast<std::uint32_t>(i - line_start + 1), cut.kind,
                      state.in_directive});
    for (std::size_t j = i; j < cut.end; ++j) {
      if (source[j] != '\n') continue;
      ++line;
      line_start = j + 1;
    }
    i = cut.end;
  }
  return tokens;
}

// The last of the tokens from `i` on that are joined into one token.
std::size_t last_glued(std::string_view source, const std::vector<Token>& tokens,
                       const std::vector<std::size_t>& closers, std::size_t i) {
  if (closers[i] != 0) return closers[i];
  const auto is_part = [&](std::size_t j) {
    return j < tokens.size() && tokens[j].kind == Kind::kPunctuator &&
           source[tokens[j].offset] == '>' && closers[j] == 0;
  };
  if (!is_part(i) || tokens[i].size != 1) return i;
  return is_part(i + 1) ? i + 1 : i;
}

std::vector<Token> glue(std::string_view source, const std::vector<Token>& tokens,
                        const std::vector<std::size_t>& closers) {
  MC_CHECK(closers.size() == tokens.size());
  std::vector<Token> glued;
  glued.reserve(tokens.size());
  std::size_t i = 0;
  while (i < tokens.size()) {
    const std::size_t last = last_glued(source, tokens, closers, i);
    Token token = tokens[i];
    token.size = tokens[last].offset + tokens[last].size - token.offset;
    if (closers[i] != 0) token.kind = Kind::kLaunchClose;
    glued.push_back(token);
    i = last + 1;
  }
  return glued;
}

bool is_raw_string(std::string_view text) {
  return text.substr(0, text.find('"')).find('R') != std::string_view::npos;
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  MC_CHECK(source.size() <= kSourceBytesMax);
  const std::vector<Token> tokens = scan(source);
  return glue(source, tokens, launch_closers(source, tokens));
}

std::string spelling_of(std::string_view source, const Token& token) {
  const std::string_view text = text_of(source, token);
  const bool is_raw = token.kind == Kind::kString && is_raw_string(text);
  if (is_raw || text.find('\n') == std::string_view::npos) return std::string(text);
  std::string spelling;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = splice_size(text, i);
    if (size == 0) spelling += text[i];
    i += size == 0 ? 1 : size;
  }
  return spelling;
}

}  // namespace mc::lex
