// SPDX-License-Identifier: Apache-2.0
#include "reward/page.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "core/check.h"
#include "reward/tokens.h"
#include "task/text.h"

namespace mc::reward {
namespace {

constexpr size_t kTokensMin = 50;
constexpr size_t kTokensOfTheEnd = 20;  // "(8 more lines left out)" and its line break.

constexpr size_t kSpecialTokenBytesMax = 100;

// Words in angle brackets that are not special tokens of a template.
constexpr std::array<std::string_view, 24> kPlainInAngles = {
    "T",       "__half", "__nv_bfloat16", "algorithm", "bool",   "char",     "cmath",    "cstdint",
    "double",  "float",  "float2",        "float4",    "half",   "half2",    "int",      "int32_t",
    "int64_t", "long",   "scalar_t",      "short",     "size_t", "unsigned", "uint32_t", "vector"};

// The length of the mark at the beginning of `text`; templates also use its full-width form.
size_t length_of_one(std::string_view text, std::string_view mark, std::string_view wide_mark) {
  if (text.starts_with(mark)) return mark.size();
  return text.starts_with(wide_mark) ? wide_mark.size() : 0;
}

size_t angle_at(std::string_view text) { return length_of_one(text, "<", "\uFF1C"); }
size_t bracket_at(std::string_view text) { return length_of_one(text, "[", "\uFF3B"); }
size_t bar_at(std::string_view text) { return length_of_one(text, "|", "\uFF5C"); }

// The bytes before the closing mark, where no byte between separates words.
std::string_view enclosed(std::string_view text, std::string_view mark,
                          std::string_view wide_mark) {
  constexpr std::string_view kParting = " <[(),;&*\"'=";
  for (size_t end = 0; end < std::min(text.size(), kSpecialTokenBytesMax); ++end) {
    if (length_of_one(text.substr(end), mark, wide_mark) > 0) return text.substr(0, end);
    if (kParting.find(text[end]) != kParting.npos) break;
  }
  return {};
}

bool is_plain_in_angles(std::string_view word) {
  const bool is_number =
      std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_number || word.find('.') != word.npos || word.find("::") != word.npos ||
         std::ranges::find(kPlainInAngles, word) != kPlainInAngles.end();
}

// True for an index, which has no bar and no adjacent capital letters, unlike [INST] and [gMASK].
bool is_plain_in_brackets(std::string_view word) {
  const auto is_capital = [](unsigned char c) { return std::isupper(c) != 0; };
  const auto both = [&](char a, char b) { return is_capital(a) && is_capital(b); };
  return word.find('|') == word.npos && !word.starts_with('/') && !word.starts_with("control_") &&
         std::ranges::adjacent_find(word, both) == word.end() &&
         std::ranges::all_of(word, [](unsigned char c) { return c < 0x80; });
}

// True if a space must follow the mark at the beginning of a text; `rest` is the text after the
// mark.
bool may_begin_token(bool is_angle, std::string_view rest) {
  if (bar_at(rest) > 0 || rest.starts_with(is_angle ? ']' : '>')) return true;
  return is_angle ? !is_plain_in_angles(enclosed(rest, ">", "\uFF1E"))
                  : !is_plain_in_brackets(enclosed(rest, "]", "\uFF3D"));
}

}  // namespace

std::string without_special_tokens(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t angle = angle_at(text), bracket = angle > 0 ? 0 : bracket_at(text);
    const size_t mark = std::max(angle, bracket);
    const size_t length = std::max<size_t>(mark, 1);
    // MiniMax has "]~b]", "[e~[" and "]<]minimax[>[".
    if (bracket > 0 && out.ends_with('~')) out += ' ';
    out += text.substr(0, length);
    const bool is_closing = text.starts_with("]~");
    text.remove_prefix(length);
    if (is_closing || (mark > 0 && may_begin_token(angle > 0, text))) out += ' ';
  }
  return out;
}

Page::Page(size_t tokens_max) : tokens_left_(tokens_max - kTokensOfTheEnd) {
  MC_CHECK(tokens_max >= kTokensMin);
}

void Page::say(std::string_view sentence) {
  add(without_special_tokens(task::plain_line(sentence, kSentenceBytesMax)));
}

void Page::quote(std::string_view text) {
  const std::string line = task::plain_line(text, kQuoteBytesMax);
  if (!line.empty()) add("> " + without_special_tokens(line));
}

void Page::add(std::string line) {
  line += '\n';
  const size_t tokens = estimate_tokens(line);
  if (num_lines_left_out_ > 0 || tokens > tokens_left_) {
    ++num_lines_left_out_;
    return;
  }
  tokens_left_ -= tokens;
  text_ += line;
}

std::string Page::text() const {
  if (num_lines_left_out_ == 0) return text_;
  return text_ + '(' + std::to_string(num_lines_left_out_) + " more lines left out)\n";
}

void say_hint(Page& page, std::string_view hint) {
  if (!hint.empty()) page.say(fmt::format("Hint: {}", hint));
}

void say_how_many_more(Page& page, size_t num, size_t num_max, std::string_view what) {
  if (num > num_max) page.say(fmt::format("... and {} more {}.", num - num_max, what));
}

std::string quoted(std::string_view text) {
  constexpr size_t kInSentenceBytesMax = 240;
  std::string line = task::plain_line(text, kInSentenceBytesMax);
  std::replace(line.begin(), line.end(), '"', '\'');
  return '"' + line + '"';
}

std::string named(std::string_view text) {
  constexpr size_t kNameBytesMax = 80;
  constexpr std::string_view kMarks = "_.:,<>[]'()+-*&/";
  const bool is_name =
      !text.empty() && text.size() <= kNameBytesMax &&
      std::all_of(text.begin(), text.end(), [&](unsigned char c) {
        return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != kMarks.npos;
      });
  return is_name ? std::string(text) : quoted(text);
}

}  // namespace mc::reward
