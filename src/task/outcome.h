// SPDX-License-Identifier: Apache-2.0
//
// Outcome: the result of an evaluation, a variant with one alternative for each result; each
// alternative has only its own evidence.
//
//   Outcome outcome = ...;
//   const char* name = outcome_name(outcome);  // "wrong"
//   if (auto* wrong = std::get_if<Wrong>(&outcome)) use(wrong->q);
#ifndef MC_TASK_OUTCOME_H_
#define MC_TASK_OUTCOME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "task/evidence.h"
#include "task/performance.h"

namespace mc::task {

struct Unextractable {  // No module, no ModelNew, or invalid Python.
  std::string reason;   // Stable id: "no_code", "no_model_new", "syntax_error", "too_large", ...
  std::string detail;
  SourceLocation location;
  bool operator==(const Unextractable&) const = default;
};
struct Illegal {
  std::string when;  // "static" | "link" | "run" | "timing"
  std::vector<RuleFinding> findings;
  bool operator==(const Illegal&) const = default;
};
struct CompileFailed {
  std::vector<Diagnostic> diagnostics;
  bool operator==(const CompileFailed&) const = default;
};
struct Crashed {      // An exception, a fatal signal, an exit, a fatal kernel finding.
  std::string stage;  // "record" | "load" | "init" | "forward"
  std::optional<Exception> exception;
  int signal = 0;     // 0 = none.
  int exit_code = 0;  // The code of a process that exited without a response.
  std::vector<KernelFinding> findings;
  std::vector<Trial> trials;  // The trials before the crash.
  bool operator==(const Crashed&) const = default;
};
struct TimedOut {
  std::string stage;
  double limit_s = 0;
  std::vector<KernelFinding> findings;
  bool operator==(const TimedOut&) const = default;
};
struct OutOfMemory {
  std::string stage;
  int64_t limit_bytes = 0;
  bool operator==(const OutOfMemory&) const = default;
};
struct Wrong {
  double q = 0;  // Share of the trials that count which passed, < 1.
  // True if it is right at the main shape and wrong only at other shapes, which count.
  bool specialised = false;
  std::vector<Trial> trials;
  bool operator==(const Wrong&) const = default;
};
struct Passed {
  std::vector<Trial> trials;
  std::optional<Performance> performance;
  // The share of trials at other sizes that passed; 1 where all trials count.
  double generality = 1;
  bool operator==(const Passed&) const = default;
};
struct Unsupported {  // The backend lacks a feature; no evidence about the candidate.
  std::vector<RuleFinding> constructs;
  bool operator==(const Unsupported&) const = default;
};
struct Infra {  // The environment failed; the evaluation should be repeated.
  std::string message;
  bool operator==(const Infra&) const = default;
};

using Outcome = std::variant<Unextractable, Illegal, CompileFailed, Crashed, TimedOut, OutOfMemory,
                             Wrong, Passed, Unsupported, Infra>;

// "extraction", "illegal", "compile", "runtime", "timeout", "oom", "wrong", "pass", "unsupported",
// "infra": the names of the JSON form and of the corpus.
const char* outcome_name(const Outcome& outcome);
const std::vector<std::string>& outcome_names();

}  // namespace mc::task

#endif  // MC_TASK_OUTCOME_H_
