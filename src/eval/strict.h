// SPDX-License-Identifier: Apache-2.0
//
// Strict: the further checks that a passed candidate must pass before it counts as a winner
// (docs/timing.md).  Two more judges with other secret seeds, each with a candidate process of its
// own; on a CUDA device also the tools of compute-sanitizer, one after the other.
//
//   Strict strict(context, {task.code, program, kernels, judge_options, use});
//   MC_TRY(auto decided, strict.run(passed), "strict");
//   verdict.telemetry.audits = strict.audits();
#ifndef MC_EVAL_STRICT_H_
#define MC_EVAL_STRICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "eval/evaluation.h"
#include "eval/schedule.h"
#include "execute/audit.h"
#include "execute/executor.h"
#include "task/outcome.h"

namespace mc::eval {

struct StrictSubject {
  const std::string& task_source;
  const execute::Program& program;
  const std::vector<std::string>& kernels;  // The candidate's own kernels, mangled.
  uint64_t seed;                            // The seed of the evaluation.
  execute::JudgeOptions judge;
  Schedule::Use use;
};

class Strict {
 public:
  // REQUIRES: both outlive it.
  Strict(const EvaluationContext& context, const StrictSubject& subject)
      : context_(context), subject_(subject) {}

  // The outcome of the first check that fails; nothing where none does.  An outcome with findings
  // contains the trials of `passed`.
  Result<std::optional<task::Outcome>> run(const task::Passed& passed);

  // The audits so far, also after an error.
  const std::vector<task::Audit>& audits() const { return audits_; }

 private:
  using EarlyOutcome = std::optional<task::Outcome>;
  Result<EarlyOutcome> repeat(int number);
  EarlyOutcome audit(const task::Passed& passed);
  execute::AuditEnd audit_with(execute::SanitizerTool tool) const;

  const EvaluationContext& context_;
  const StrictSubject& subject_;
  std::vector<task::Audit> audits_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_STRICT_H_
