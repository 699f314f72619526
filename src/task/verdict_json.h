// SPDX-License-Identifier: Apache-2.0
//
// The JSON form of a Verdict: the output of `eval --json`, the form on the network, and the stored
// form. docs/verdict.md describes it for readers, docs/verdict.schema.json for programs.
//
// The form has a version, "musacoder-verdict/14", and is closed: every field is always present and
// no other is allowed.  Integers are JSON numbers, except the seed, which has 64 bits and is a
// decimal string because many JSON readers keep only 53.  A double that is not finite is the string
// "nan", "inf" or "-inf".  Bytes that are not UTF-8, such as a candidate's output, become U+FFFD.
// Example:
//   std::string text = to_json(verdict, Indent::kPretty);
//   MC_TRY(Verdict again, verdict_from_json(text), "read " + path);
#ifndef MC_TASK_VERDICT_JSON_H_
#define MC_TASK_VERDICT_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::task {

inline constexpr const char* kVerdictSchema = "musacoder-verdict/14";
inline constexpr size_t kVerdictBytesMax = 16 << 20;

enum class Indent { kCompact, kPretty };  // One line, or lines indented by two spaces a level.

// Never fails.  Ends without a newline.
std::string to_json(const Verdict& verdict, Indent indent);

// kInvalidInput when the text is not JSON, is larger than kVerdictBytesMax or does not have exactly
// this version's form; the message names the field: "outcome.trials[2].passed: not a boolean".
Result<Verdict> verdict_from_json(std::string_view text);

}  // namespace mc::task

#endif  // MC_TASK_VERDICT_JSON_H_
