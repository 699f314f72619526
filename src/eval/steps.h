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

// A stage that passed holds nothing; otherwise the candidate's fate is decided.
using Decided = std::optional<task::Outcome>;
using Stage = Result<Decided>;

template <typename T>
struct Step {
  const char* name;
  Stage (T::*run)();
};

// The first step's decision, or nothing where all pass.  An exception ends this candidate alone.
template <typename T>
Stage run_steps(T& subject, std::span<const Step<T>> steps, std::vector<task::StageTime>& times) {
  try {
    for (const Step<T>& step : steps) {
      const auto start = std::chrono::steady_clock::now();
      MC_TRY(Decided decided, (subject.*step.run)(), step.name);
      const std::chrono::duration<double, std::milli> taken =
          std::chrono::steady_clock::now() - start;
      times.push_back({step.name, taken.count()});
      if (decided) return decided;
    }
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kUnavailable, std::string("exception: ") + exception.what()};
  }
  return Decided();
}

}  // namespace mc::eval

#endif  // MC_EVAL_STEPS_H_
