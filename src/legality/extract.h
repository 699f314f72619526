// SPDX-License-Identifier: Apache-2.0
//
// From a model's raw answer to the text of one Python module.  The rules, with their reasons, are
// in docs/legality.md; in short: reasoning is dropped, then the last fenced block that defines
// ModelNew is the module, or the text itself if it has no fences.
//
// Choosing needs to know whether a text *seems to* define ModelNew, and looks at lines for that.
// Whether the module is Python and really defines it, CPython's own parser decides later.
#ifndef MC_LEGALITY_EXTRACT_H_
#define MC_LEGALITY_EXTRACT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "task/verdict.h"

namespace mc::legality {

// Brackets deeper than this, counted over the whole module, strings included.
inline constexpr int kNestingDepthMax = 1000;

struct Extracted {
  std::string module;  // UTF-8 without NUL, "\n" line ends, at most task::kCandidateBytesMax.
};

// Reasons of the other alternative: "empty", "too_large", "no_code", "no_model_new",
// "unfinished_reasoning", "nul_byte", "invalid_utf8", "too_deep".
using Extraction = std::variant<Extracted, task::Unextractable>;

// Total and pure; time and memory are linear in the answer.
Extraction extract(std::string_view answer);

// The answer without its reasoning and the empty lines behind that: what the next turn of its
// conversation shows of it.
std::string_view visible_answer(std::string_view answer);

}  // namespace mc::legality

#endif  // MC_LEGALITY_EXTRACT_H_
