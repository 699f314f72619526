// SPDX-License-Identifier: Apache-2.0
//
// The text that a model reads about its candidate, so that its next answer is better.
//
// Plain text: the result, then the evidence in order of use: the rule and where it was broken; the
// compiler's first errors with the candidate's lines; the exception, its place and frames; kernel
// findings with block, thread and line and what such a thing usually means; for a wrong kernel the
// first failing trial in full (shape, values, mismatches with indices, histogram of errors) and one
// line for each other; for a correct one the profile of its time on a device (profile_text.h); at
// the end how the task was reduced for this backend.
//
// The text is bounded, and the end goes first.  What the candidate wrote or printed is data: it is
// stripped of control characters, kept to one line, bounded, and stands behind "> " on a line of
// its own or in quotation marks, so that it cannot pass for a sentence of ours.
// Example:
//   prompt += feedback(verdict, {});
#ifndef MC_REWARD_FEEDBACK_H_
#define MC_REWARD_FEEDBACK_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "task/verdict.h"

namespace mc::reward {

struct FeedbackOptions {
  size_t tokens_max = 2000;  // The measure is estimate_tokens.
};

// Pure; of times it tells those measured on a device alone, and no paths: without a measurement it
// is the same for two runs of one candidate.
// Ends in a newline and never holds more than tokens_max tokens.
// REQUIRES: options.tokens_max >= 50.
std::string feedback(const task::Verdict& verdict, const FeedbackOptions& options);

// How small models are asked to try again.  The data that they are trained on and the loop that
// they are asked in take it from here, so that the two are the same text.
inline constexpr size_t kRepairFeedbackTokens = 200;

// The user's turn after an answer that failed.
std::string repair_request(std::string_view feedback);

// The user's turn after a right answer, where a faster one is wanted.
std::string speed_request(std::string_view feedback);

// The text behind a task's prompt, in the same message, where a failed answer of another
// conversation is to be put right.
std::string retry_request(std::string_view answer, std::string_view feedback);

}  // namespace mc::reward

#endif  // MC_REWARD_FEEDBACK_H_
