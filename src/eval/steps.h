// SPDX-License-Identifier: Apache-2.0
//
// Steps: the stages of one evaluation, each run only when the one before passed, and timed.
#ifndef MC_EVAL_STEPS_H_
#define MC_EVAL_STEPS_H_

#include <chrono>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::eval {

// Empty for a stage that passed; otherwise the candidate's outcome.
using EarlyOutcome = std::optional<task::Outcome>;
using Stage = Result<EarlyOutcome>;

template <typename T>
struct Step {
  const char* name;
  Stage (T::*run)();
};

// Adds the time of a step to the verdict and to the log.
void add_time(task::Verdict& verdict, const char* step,
              std::chrono::steady_clock::time_point start);
// Adds the time of a wait; waits with the same name are summed.
void add_wait(task::Verdict& verdict, const char* what,
              std::chrono::steady_clock::time_point start);

// The outcome of the first step that has one, or nothing where all pass.  An exception ends only
// this candidate's evaluation.
template <typename T>
Stage run_steps(T& subject, std::span<const Step<T>> steps, task::Verdict& verdict) {
  try {
    for (const Step<T>& step : steps) {
      const auto start = std::chrono::steady_clock::now();
      MC_TRY(EarlyOutcome decided, (subject.*step.run)(), step.name);
      add_time(verdict, step.name, start);
      if (decided) return decided;
    }
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kUnavailable, std::string("exception: ") + exception.what()};
  }
  return EarlyOutcome();
}

}  // namespace mc::eval

#endif  // MC_EVAL_STEPS_H_
