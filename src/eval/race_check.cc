// SPDX-License-Identifier: Apache-2.0
#include "eval/race_check.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "core/cancel.h"
#include "core/check.h"
#include "eval/machine.h"
#include "eval/steps.h"

namespace mc::eval {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kDevice = "ptx sm_90";  // device/ptx_driver/description.h
constexpr int kTrials = 2;  // In every other launch the device permutes the order of warps.
constexpr int kCoresForEachJob = 2;
constexpr int kNiceness = 10;
constexpr milliseconds kLookInterval{20};  // The interval of checks for a cancellation.

// Lowers this thread's priority, since processes that feed a GPU come first.  On Linux, priorities
// belong to threads, and children inherit them.
void yield_to_others() { ::setpriority(PRIO_PROCESS, 0, kNiceness); }

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// True for a fault that does not stop a GPU from computing.
bool is_hidden(const task::KernelFinding& finding) {
  constexpr std::string_view kKinds[] = {"shared_race",          "global_race",
                                         "uninitialised_shared", "uninitialised_global",
                                         "stream_race",          "out_of_bounds_read",
                                         "out_of_bounds_write",  "misaligned",
                                         "divergent_barrier",    "deadlock"};
  return std::ranges::find(kKinds, finding.kind) != std::end(kKinds);
}

bool has_hidden(const task::Trial& trial) { return std::ranges::any_of(trial.findings, is_hidden); }

// A finding at a shape that does not count is decisive only where it is the only fault: the other
// fault may be wrong values at the main shape, which the GPU's values are not.
bool decides(const task::Wrong& wrong) {
  const auto is_main = [&](const task::Trial& trial) {
    return trial.shape == wrong.trials.front().shape;
  };
  const bool has_wrong_values = std::ranges::any_of(wrong.trials, [&](const task::Trial& trial) {
    return is_main(trial) && !trial.checks.empty();
  });
  return std::ranges::any_of(wrong.trials, [&](const task::Trial& trial) {
    return has_hidden(trial) && (is_main(trial) || !has_wrong_values);
  });
}

bool decides(const task::Crashed& crashed) {
  return std::ranges::any_of(crashed.findings, [](const task::KernelFinding& finding) {
    return is_hidden(finding) && task::ends_kernel(finding);
  });
}

// Decides on outputs that the host computed: a GPU does not know the origin of outputs.
bool decides(const task::Illegal& illegal) {
  return std::ranges::all_of(illegal.findings, [](const task::RuleFinding& finding) {
    return finding.rule == task::kHostOutput;
  });
}

bool has_findings_that_decide(const task::Outcome& outcome) {
  if (const auto* illegal = std::get_if<task::Illegal>(&outcome)) return decides(*illegal);
  if (const auto* wrong = std::get_if<task::Wrong>(&outcome)) return decides(*wrong);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  return crashed != nullptr && decides(*crashed);
}

// A candidate that is made for the task's own sizes may have faults at reduced sizes that never
// occur at its own.
bool is_right_at_other_sizes(const task::Passed& passed) {
  return passed.generality == 1 && std::ranges::any_of(passed.trials, [&](const auto& trial) {
           return trial.passed && trial.shape != passed.trials.front().shape;
         });
}

// The reason why an evaluation that neither passes nor has findings is not a check.
std::string reason_of(const task::Outcome& outcome) {
  std::string detail;
  if (const auto* lacking = std::get_if<task::Unsupported>(&outcome)) {
    if (!lacking->constructs.empty()) detail = lacking->constructs.front().message;
  } else if (const auto* infra = std::get_if<task::Infra>(&outcome)) {
    detail = infra->message;
  } else if (const auto* crashed = std::get_if<task::Crashed>(&outcome)) {
    if (crashed->exception) detail = crashed->exception->message;
  }
  return fmt::format("{} there{}{}", task::outcome_name(outcome), detail.empty() ? "" : ": ",
                     detail);
}

task::RaceCheck not_run(std::string reason, double seconds = 0) {
  return {"not_run", kDevice, std::move(reason), seconds};
}

}  // namespace

task::Correctness race_correctness(task::Correctness correctness) {
  correctness.trials = std::min(correctness.trials, kTrials);
  correctness.inputs = "native";
  return correctness;
}

void merge_race_check(const task::Verdict& checked, task::Verdict& verdict) {
  const auto& passed = std::get<task::Passed>(verdict.outcome);
  task::RaceCheck& record = verdict.telemetry.race_check;
  record = {"clean", kDevice, "", record.seconds};
  if (std::holds_alternative<task::Passed>(checked.outcome)) return;
  if (!has_findings_that_decide(checked.outcome)) {
    record = not_run(reason_of(checked.outcome), record.seconds);
    return;
  }
  const bool is_reduced = !checked.telemetry.reduction.reason.empty();
  if (is_reduced && !is_right_at_other_sizes(passed)) {
    record = not_run("right at the task's own sizes alone", record.seconds);
    return;
  }
  record.state = "found";
  verdict.outcome = checked.outcome;
}

bool checks_races(const Options& options, const Machine& machine, int num_cores) {
  if (!machine.race_checker || machine.devices.empty()) return false;
  if (options.race_check != RaceCheckMode::kAuto) return options.race_check == RaceCheckMode::kOn;
  const int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(machine.devices.size()) * kJobsADevice;
  return num_cores >= kCoresForEachJob * jobs;
}

RaceCheck::Checked RaceCheck::run(const std::shared_future<Result<RaceJudge>>& judge,
                                  const RaceSubject& subject) {
  const auto start = Clock::now();
  const auto cancelled = [&] {
    return Checked{Error{ErrorCode::kUnavailable, "cancelled"}, seconds_since(start)};
  };
  yield_to_others();
  while (judge.wait_for(kLookInterval) != std::future_status::ready) {
    if (is_cancelled()) return cancelled();
  }
  if (!judge.get()) return {judge.get().error(), seconds_since(start)};
  if (is_cancelled()) return cancelled();
  task::Verdict verdict = (*judge.get())(subject);
  return {std::move(verdict), seconds_since(start)};
}

RaceCheck::RaceCheck(std::shared_future<Result<RaceJudge>> judge, RaceSubject subject) {
  std::promise<Checked> promise;
  checked_ = promise.get_future();
  thread_ = std::jthread([promise = std::move(promise), judge = std::move(judge),
                          subject = std::move(subject)](const std::stop_token& stop) mutable {
    const CancelScope scope(stop);
    promise.set_value(run(judge, subject));
  });
}

// True if the check ended within that time.
bool RaceCheck::wait(double wait_s) const {
  const auto start = Clock::now();
  while (checked_.wait_for(kLookInterval) != std::future_status::ready) {
    if (is_cancelled() || seconds_since(start) > wait_s) return false;
  }
  return true;
}

void RaceCheck::finish(task::Verdict& verdict, double wait_s) {
  MC_CHECK(checked_.valid());
  task::RaceCheck& record = verdict.telemetry.race_check;
  if (!std::holds_alternative<task::Passed>(verdict.outcome)) {
    record = {"not_needed", kDevice, "", 0};
    return;
  }
  const auto start = Clock::now();
  const bool has_ended = wait(wait_s);
  add_wait(verdict, "wait.race_check", start);
  if (!has_ended) {
    record = not_run(fmt::format("time limit: {:.0f} s after the other judgement", wait_s));
    return;
  }
  const Checked checked = checked_.get();
  record.seconds = checked.seconds;
  if (checked.verdict) {
    merge_race_check(*checked.verdict, verdict);
  } else {
    record = not_run(checked.verdict.error().message, checked.seconds);
  }
}

RaceChecker::RaceChecker(Create create)
    : judge_(std::async(std::launch::async, [create = std::move(create)] {
        yield_to_others();
        return create();
      })) {}

}  // namespace mc::eval
