// SPDX-License-Identifier: Apache-2.0
//
// Trials: the rules that turn the calls of one candidate into its outcome (docs/correctness.md).
//
// Measurement (measurement.h) makes the calls, queries the judge, and reports both here.  The first
// rule that holds decides:
//
//   1  a kernel used a feature that the device lacks, before any other     the trial fails (below)
//      finding
//   2  no reply: an exception that is neither at the main shape nor        the trial fails
//      beside a fatal finding; any other (failure.h)                       runtime, timeout, oom, …
//   3  an operator ran that the policy does not allow                      illegal
//   4  a kernel left a fault on the device                                 runtime
//   5  a forged report, work on the host or after the call, not one record illegal
//      of the call
//   6  the judge found wrong values or a changed input                     the trial fails
//   7  no own launch; the values are from PyTorch's copies, from no        illegal
//      kernel, or constant; unless a launch was refused, which is a finding
//   8  any other finding                                                   all trials fail
//
// A trial that fails by rule 1 is no evidence about the candidate.  The other trials continue, and
// the outcome is `unsupported` only where all of them passed: a candidate gains nothing by using
// features that the device lacks.
//
//   Trials::Call call = trials.begin(plan, given, report);
//   if (auto early = trials.admit(call, run)) return *early;  // Else the judge compares.
//   if (auto early = trials.add(std::move(call), run, checked)) return *early;
//   return trials.outcome();  // After the last trial.
#ifndef MC_EXECUTE_TRIALS_H_
#define MC_EXECUTE_TRIALS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/executor.h"

namespace mc::execute {

// The shape of the task itself, reduced where it does not fit; the other shapes are variants.
inline constexpr int kMainShape = 0;

// The outcome, if it is known before the last trial.
using EarlyOutcome = std::optional<task::Outcome>;

class Trials {
 public:
  // One call of forward, until its trial is added.
  struct Call {
    const TrialPlan& plan;
    task::Trial trial;
    std::optional<CallRecord> record;        // Absent unless there is exactly one.
    bool returns_inputs = false;             // True if the reference computes nothing.
    std::string taken{};                     // The configuration of an autotuned kernel, in words.
    std::optional<task::Outcome> lacking{};  // Unsupported: a kernel met what the device lacks.
    // Unsupported: the call met a library that the device lacks, and may be right without it.
    std::optional<task::Outcome> limitation{};
    const std::optional<task::Outcome>& lack() const { return lacking ? lacking : limitation; }
  };

  // REQUIRES: all arguments outlive the trials.
  Trials(const JudgePlan& plan, const RunPolicy& policy, const StageLimits& limits,
         const Program& program)
      : plan_(plan), policy_(policy), limits_(limits), program_(program) {}

  // From now on, calls repeat trials that passed, with this configuration of the candidate's
  // autotuned kernels.  A call that fails now makes its trial fail, with a finding that names the
  // configuration.  REQUIRES: there was one trial of each plan.
  void repeat(int64_t configuration, int64_t num_configurations);
  // Begins a call.  `report` is the device's report since the previous call.
  Call begin(const TrialPlan& plan, const worker::JudgeTrialResponse& given,
             std::string_view report);
  // Records a call that ended without a reply.
  EarlyOutcome fail(const Call& call, const CallResult& result);
  // Applies rules 1 to 5.  The judge need not compare the outputs of a call that has an outcome,
  // nor those of a call with `lacking`, whose trial is added here.
  EarlyOutcome admit(Call& call, const worker::CandidateRunResponse& run);
  // Rules 6 and 7.  REQUIRES: the call was admitted, and has no `lacking`.
  EarlyOutcome add(Call call, const worker::CandidateRunResponse& run,
                   worker::JudgeCheckResponse checked);
  // The outcome where the judge could not read the candidate process's outputs.
  task::Outcome reject(Call call, std::string detail);
  // Illegal where the device did work while the judge compared; `report` is from that time.
  EarlyOutcome check_idle(std::string_view report) const;
  // Adds a trial that cannot run or whose failure does not count; `why` may be null.
  void fail(const TrialPlan& plan, const task::Outcome* why);

  // Applies rule 8, and computes the shares of trials that passed.  REQUIRES: one trial of each
  // plan.
  task::Outcome outcome();
  // An early outcome with the trials before it.  A failed trial among these takes precedence over
  // `unsupported`.
  task::Outcome with_trials(task::Outcome early);
  // Unsupported, for the first feature that the device lacked in a trial that counts, if any.
  const EarlyOutcome& lacking() const { return lacking_; }
  // True if a trial that counts failed for another reason than a feature that the device lacks.
  bool has_failed() const;

  // False for a trial whose failure does not change the outcome.
  bool counts(const TrialPlan& plan) const;
  // True for a trial of special values while no other trial has passed.  Such a trial is easy, and
  // must not raise the share q of a candidate that fails all others.
  bool is_pointless(const TrialPlan& plan) const;
  // True if the policy allows all of PyTorch.
  bool may_use_all() const { return policy_.operators.contains("*"); }
  const std::vector<task::Trial>& all() const { return trials_; }
  const std::map<std::string, int64_t>& aten_ops() const { return aten_ops_; }

 private:
  // A repetition with another configuration of autotuned kernels than the first.
  struct Repetition {
    int64_t configuration;
    int64_t num_configurations;
  };

  task::Trial trial_of(const TrialPlan& plan) const;
  void put(task::Trial trial, const std::string& taken);
  task::KernelFinding configuration_finding(const std::string& taken) const;
  EarlyOutcome note_aten(const std::map<std::string, int64_t>& calls);
  EarlyOutcome made_without_kernel(const Call& call, const worker::CandidateRunResponse& run) const;

  const JudgePlan& plan_;
  const RunPolicy& policy_;
  const StageLimits& limits_;
  const Program& program_;

  std::vector<task::Trial> trials_;
  std::map<std::string, int64_t> aten_ops_;
  int64_t last_number_ = 0;  // The device's number of the previous call.
  EarlyOutcome lacking_;     // The first one among trials that count.
  std::optional<Repetition> repetition_;
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_TRIALS_H_
