// SPDX-License-Identifier: Apache-2.0
//
// RaceCheck: a second evaluation of a candidate beside that of a GPU, on a device that shows faults
// that a GPU hides: races, accesses out of bounds, reads of uninitialised shared memory
// (docs/correctness.md).
//
// It runs on the CPU while the GPU judges, and affects only a candidate that passes on the GPU: its
// findings become the outcome.  Any other result changes only the verdict's telemetry, which then
// contains the reason.
//
//   RaceChecker checker(create_judge);  // Once; `create_judge` runs in another thread.
//   RaceCheck check = checker.start({task, candidate, correctness, dialect});
//   task::Verdict verdict = …;  // The GPU's.
//   check.finish(verdict);
#ifndef MC_EVAL_RACE_CHECK_H_
#define MC_EVAL_RACE_CHECK_H_

#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "core/result.h"
#include "eval/options.h"
#include "task/correctness.h"
#include "task/task.h"
#include "task/verdict.h"

namespace mc::eval {

struct Machine;

struct RaceSubject {
  task::Task task;
  task::Candidate candidate;
  task::Correctness correctness;  // The settings of the GPU's evaluation.
  std::optional<task::Dialect> dialect{};
};

// Judges on the device that shows findings.  Several threads call it at once; each has a
// CancelScope.
using RaceJudge = std::function<task::Verdict(const RaceSubject& subject)>;

// The time limit for the check after the GPU's evaluation has ended.
inline constexpr double kRaceCheckWaitSeconds = 60;

// The check of one candidate.  The destructor cancels a check that still runs.
class RaceCheck {
 public:
  RaceCheck(std::shared_future<Result<RaceJudge>> judge, RaceSubject subject);

  // Waits for the check where `verdict` is a pass, and adds its result to `verdict`.  REQUIRES: it
  // is called once.
  void finish(task::Verdict& verdict, double wait_s = kRaceCheckWaitSeconds);

 private:
  struct Checked {
    Result<task::Verdict> verdict;
    double seconds;  // Time from the start of the check.
  };
  static Checked run(const std::shared_future<Result<RaceJudge>>& judge,
                     const RaceSubject& subject);
  bool wait(double wait_s) const;

  std::future<Checked> checked_;
  std::jthread thread_;  // Ended and joined by the destructor.
};

class RaceChecker {
 public:
  using Create = std::function<Result<RaceJudge>()>;
  // Starts `create`.  A check that starts before `create` has returned waits for it; where `create`
  // fails, all checks fail.
  explicit RaceChecker(Create create);

  RaceCheck start(RaceSubject subject) const { return {judge_, std::move(subject)}; }

 private:
  std::shared_future<Result<RaceJudge>> judge_;
};

// The settings of a check: few trials with the task's own values, since races hardly depend on
// values.
task::Correctness race_correctness(task::Correctness correctness);

// Completes a check: `verdict`, a pass, gets the outcome of `checked` where that has decisive
// findings.  The record in the telemetry states this, or the result of the check otherwise.
// REQUIRES: verdict.outcome is task::Passed.
void merge_race_check(const task::Verdict& checked, task::Verdict& verdict);

// True if a machine checks for races: the options demand it, or leave it open and the machine has
// two cores for each candidate that is judged at once.
bool checks_races(const Options& options, const Machine& machine, int num_cores);

}  // namespace mc::eval

#endif  // MC_EVAL_RACE_CHECK_H_
