// SPDX-License-Identifier: Apache-2.0
//
// Page: text under a budget of tokens, line by line.
//
// A line that does not fit ends the page: it and all after it are left out and counted, and the
// page ends with a sentence that says how many.  So what matters most is written first.
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
inline constexpr size_t kQuoteBytesMax = 300;  // The bytes of a quote of the candidate's.

class Page {
 public:
  // REQUIRES: tokens_max >= 50.
  explicit Page(size_t tokens_max);

  // Both add a line without special tokens of chat templates (without_special_tokens).
  // A sentence of ours, with what it names of the candidate's already quoted.
  void say(std::string_view sentence);
  // Something of the candidate's, on a line of its own behind "> "; "" adds nothing.
  void quote(std::string_view text);

  std::string text() const;

 private:
  void add(std::string line);

  size_t tokens_left_;
  size_t num_lines_left_out_ = 0;
  std::string text_;
};

// "Hint: <hint>"; "" adds nothing.
void say_hint(Page& page, std::string_view hint);

// "... and 3 more errors." where `num` of them are more than the `num_max` that were told.
void say_how_many_more(Page& page, size_t num, size_t num_max, std::string_view what);

// Something of the candidate's within a sentence: in quotation marks, plain, bounded, without
// quotation marks of its own.
std::string quoted(std::string_view text);

// The text with a space in each sequence that a chat template may take for one of its tokens
// ("< |im_end|>", "[ INST]", "< /s>"), so that nothing that is quoted ends a turn or begins one.
// Code stays code; types, numbers and headers in angle brackets stay as they are.
std::string without_special_tokens(std::string_view text);

// The name of something of the candidate's: as it is where it can be nothing but a name or number
// ("row_sum<float>", "output[1]", "-1.5e-07"), else quoted.
std::string named(std::string_view text);

}  // namespace mc::reward

#endif  // MC_REWARD_PAGE_H_
