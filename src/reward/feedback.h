// SPDX-License-Identifier: Apache-2.0
//
// Feedback: the text that a model reads about its candidate in order to improve its next answer.
//
// Plain text: the result, then the evidence in order of use: the broken rule and its location; the
// compiler's first errors with the candidate's lines; the exception, its location and frames;
// kernel findings with block, thread, line and usual cause; for a wrong kernel the first failing
// trial in full (shape, values, mismatches with indices, histogram of errors) and one line for each
// other; for a correct one the profile of its time on a device (profile_text.h); at the end the
// reduction of the task for this backend.
//
// The text is bounded, and lines at the end are left out first.  Text of the candidate is data:
// control characters are removed, each piece is one bounded line, and it follows "> " on a line of
// its own or is in quotation marks, so that it cannot be mistaken for a sentence of ours.  Example:
//   prompt += feedback(verdict, {});
#ifndef MC_REWARD_FEEDBACK_H_
#define MC_REWARD_FEEDBACK_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "task/verdict.h"

namespace mc::reward {

struct FeedbackOptions {
  size_t tokens_max = 2000;  // The bound, as measured by estimate_tokens.
};

// A pure function.  The text contains no paths, and no times except those measured on a device:
// without a measurement it is the same for two runs of one candidate.  It ends in a newline and
// never has more than tokens_max tokens.  REQUIRES: options.tokens_max >= 50.
std::string feedback(const task::Verdict& verdict, const FeedbackOptions& options);

// The settings and texts for asking small models to try again.  Their training data and the
// evaluation loop both use these, so that the texts are the same.
inline constexpr size_t kRepairFeedbackTokens = 200;

// The user's turn after a failed answer.
std::string repair_request(std::string_view feedback);

// The user's turn after a right answer that should become faster.
std::string speed_request(std::string_view feedback);

// The text after a task's prompt, in the same message, that asks for the correction of a failed
// answer from another conversation.
std::string retry_request(std::string_view answer, std::string_view feedback);

}  // namespace mc::reward

#endif  // MC_REWARD_FEEDBACK_H_
