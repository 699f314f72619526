// SPDX-License-Identifier: Apache-2.0
#include "reward/page.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "core/check.h"
#include "reward/tokens.h"
#include "task/text.h"

namespace mc::reward {
namespace {

constexpr size_t kTokensMin = 50;
constexpr size_t kTokensOfTheEnd = 20;  // "(8 more lines left out)" and its line break.

}  // namespace

Page::Page(size_t tokens_max) : tokens_left_(tokens_max - kTokensOfTheEnd) {
  MC_CHECK(tokens_max >= kTokensMin);
}

void Page::say(std::string_view sentence) { add(task::plain_line(sentence, kSentenceBytesMax)); }

void Page::quote(std::string_view text) {
  const std::string line = task::plain_line(text, kQuoteBytesMax);
  if (!line.empty()) add("> " + line);
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
  constexpr std::string_view kMarks = "_.:,<>[]'()+-*&";
  const bool is_name =
      !text.empty() && text.size() <= kNameBytesMax &&
      std::all_of(text.begin(), text.end(), [&](unsigned char c) {
        return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != kMarks.npos;
      });
  return is_name ? std::string(text) : quoted(text);
}

}  // namespace mc::reward
