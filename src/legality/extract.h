// SPDX-License-Identifier: Apache-2.0
//
// Extracts the text of one Python module from a model's raw answer.  The rules, with their reasons,
// are in docs/legality.md; in short: reasoning is dropped, then the last fenced block that defines
// ModelNew is the module, or the text itself if it has no fences.
//
// The choice depends on whether a text *seems to* define ModelNew, which is decided by lines.
// CPython's own parser decides later whether the module is valid Python and really defines it.
#ifndef MC_LEGALITY_EXTRACT_H_
#define MC_LEGALITY_EXTRACT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "task/outcome.h"
#include "task/task.h"

namespace mc::legality {

// Bracket nesting beyond this, counted over the whole module including strings, is rejected.
inline constexpr int kNestingDepthMax = 1000;

struct Extracted {
  std::string module;  // UTF-8 without NUL, "\n" line ends, at most task::kCandidateBytesMax.
};

// The reasons of task::Unextractable: "empty", "too_large", "no_code", "no_model_new",
// "unfinished_reasoning", "nul_byte", "invalid_utf8", "too_deep".
using Extraction = std::variant<Extracted, task::Unextractable>;

// A pure function that accepts any text; time and memory are linear in the answer.
Extraction extract(std::string_view answer);

// The answer without its reasoning and the empty lines after it, as it appears in the next turn of
// the conversation.
std::string_view visible_answer(std::string_view answer);

}  // namespace mc::legality

#endif  // MC_LEGALITY_EXTRACT_H_
