// SPDX-License-Identifier: Apache-2.0
//
// Page: text under a budget of tokens, line by line.
//
// The first line that does not fit ends the page: it and all later lines are left out and counted,
// and a last sentence contains their number.  So the most important lines must be written first.
//
//   Page page(2000);
//   page.say("Result: the kernel crashed.");
//   page.quote(exception.message);  // "> index 7 is out of bounds"
//   return page.text();
#ifndef MC_REWARD_PAGE_H_
#define MC_REWARD_PAGE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace mc::reward {

inline constexpr size_t kSentenceBytesMax =
    600;  // The bytes of a sentence of ours, with quoted parts in it.
inline constexpr size_t kQuoteBytesMax = 300;  // The bound on quoted text of the candidate.

class Page {
 public:
  // REQUIRES: tokens_max >= 50.
  explicit Page(size_t tokens_max);

  // Both functions remove special tokens of chat templates (without_special_tokens).  This one adds
  // a sentence of ours, in which text of the candidate is quoted already.
  void say(std::string_view sentence);
  // Adds text of the candidate, on a line of its own after "> "; "" adds nothing.
  void quote(std::string_view text);

  std::string text() const;

 private:
  void add(std::string line);

  size_t tokens_left_;
  size_t num_lines_left_out_ = 0;
  std::string text_;
};

// Adds "Hint: <hint>"; "" adds nothing.
void say_hint(Page& page, std::string_view hint);

// Adds "... and 3 more errors." where `num` exceeds the `num_max` that were listed.
void say_how_many_more(Page& page, size_t num, size_t num_max, std::string_view what);

// Text of the candidate within a sentence: in quotation marks, plain, bounded, without quotation
// marks of its own.
std::string quoted(std::string_view text);

// The text with a space in each sequence that a chat template could interpret as a special token
// ("< |im_end|>", "[ INST]", "< /s>"), so that no quoted text ends or begins a turn.  Code, types,
// numbers and headers in angle brackets do not change.
std::string without_special_tokens(std::string_view text);

// A name in the candidate's text: unchanged where it can only be a name or number
// ("row_sum<float>", "output[1]", "-1.5e-07"), else quoted.
std::string named(std::string_view text);

}  // namespace mc::reward

#endif  // MC_REWARD_PAGE_H_
