// SPDX-License-Identifier: Apache-2.0
//
// RaceCheck: a second judgement of a candidate beside that of a GPU, on a device that shows what a
// GPU hides: races, accesses out of bounds, shared memory that nothing wrote (docs/correctness.md).
//
// It runs on the CPU while the GPU judges, and decides only about a candidate that the GPU passes:
// its findings become the outcome.  Whatever else happens in it changes nothing but the verdict's
// telemetry, which gives the reason.
//
//   RaceChecker checker(create_judge);  // Once; `create_judge` runs beside what follows.
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
#include "eval/pipeline.h"
#include "task/correctness.h"
#include "task/task.h"
#include "task/verdict.h"

namespace mc::eval {

struct Machine;

struct RaceSubject {
  task::Task task;
  task::Candidate candidate;
  task::Correctness correctness;  // The settings of the GPU's judgement.
  std::optional<task::Dialect> dialect{};
};

// Judges on the device that shows findings.  Called by several threads at once; each has a
// CancelScope.
using RaceJudge = std::function<task::Verdict(const RaceSubject& subject)>;

// The time that a verdict waits for its check after the GPU's judgement.
inline constexpr double kRaceCheckWaitSeconds = 60;

// The check of one candidate, which runs until its end or until this one's.
class RaceCheck {
 public:
  RaceCheck(std::shared_future<Result<RaceJudge>> judge, RaceSubject subject);

  // Waits where `verdict` is a pass, and puts the result there.  REQUIRES: it is called once.
  void finish(task::Verdict& verdict, double wait_s = kRaceCheckWaitSeconds);

 private:
  struct Checked {
    Result<task::Verdict> verdict;
    double seconds;  // From the start of the check.
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
  // A check that starts before `create` has returned waits for it; where it fails, checks do.
  explicit RaceChecker(Create create);

  RaceCheck start(RaceSubject subject) const { return {judge_, std::move(subject)}; }

 private:
  std::shared_future<Result<RaceJudge>> judge_;
};

// The settings of a check: few trials of the task's own values, since races depend on little else.
task::Correctness race_correctness(task::Correctness correctness);

// The end of a check: `verdict`, a pass, gets the outcome of `checked` where that has findings that
// decide.  The record in its telemetry says so, or what the check came to otherwise.
// REQUIRES: verdict.outcome is task::Passed.
void merge_race_check(const task::Verdict& checked, task::Verdict& verdict);

// True if a machine checks for races: where the options ask for it, or leave it open and the
// machine has two cores for each candidate that is judged at once.
bool checks_races(const Options& options, const Machine& machine, int num_cores);

}  // namespace mc::eval

#endif  // MC_EVAL_RACE_CHECK_H_
