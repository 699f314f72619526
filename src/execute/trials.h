// SPDX-License-Identifier: Apache-2.0
//
// Trials: the rules by which the calls of one candidate become its outcome (docs/correctness.md).
//
// Measurement (measurement.h) makes the calls, asks the judge, and reports both here.  The first of
// these that holds decides:
//
//   1  a kernel reached what the device lacks before any other finding   the trial fails (below)
//   2  no reply: an exception that is neither at the main shape nor        the trial fails
//      beside a fatal finding; any other (failure.h)                       runtime, timeout, oom, …
//   3  an operator ran that the policy does not allow                      illegal
//   4  a kernel left a fault on the device                                 runtime
//   5  a forged report, work on the host or after the call, not one record illegal
//      of the call
//   6  the judge found wrong values or a changed input                     the trial fails
//   7  no own launch, PyTorch's copies or no kernel made the values, they   illegal
//      are a constant; unless a launch was refused, which is a finding
//   8  any other finding                                                   all trials fail
//
// A trial that fails by rule 1 says nothing of the candidate.  The others go on, and the outcome is
// `unsupported` only where they all passed: a candidate gains nothing by using what is not there.
//
//   Trials::Call call = trials.begin(plan, given, report);
//   if (auto early = trials.admit(call, run)) return *early;  // Else the judge compares.
//   if (auto early = trials.add(std::move(call), run, checked)) return *early;
//   return trials.outcome();  // Once there are no more.
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

// The shape that the task asks for, as far as it fits; the others are variants.
inline constexpr int kMainShape = 0;

// The outcome, where it is known before the last trial.
using EarlyOutcome = std::optional<task::Outcome>;

class Trials {
 public:
  // One call of forward, until its trial is added.
  struct Call {
    const TrialPlan& plan;
    task::Trial trial;
    std::optional<CallRecord> record;        // Absent unless there is exactly one.
    bool returns_inputs = false;             // The reference computes nothing.
    std::string taken{};                     // The configuration of an autotuned kernel, in words.
    std::optional<task::Outcome> lacking{};  // Unsupported: a kernel met what the device lacks.
    // Unsupported: the call met a library that the device lacks, and may be right without it.
    std::optional<task::Outcome> excuse{};
    const std::optional<task::Outcome>& lack() const { return lacking ? lacking : excuse; }
  };

  // All of them must outlive this.
  Trials(const JudgePlan& plan, const RunPolicy& policy, const StageLimits& limits,
         const Program& program)
      : plan_(plan), policy_(policy), limits_(limits), program_(program) {}

  // From now on, calls run trials that passed again, with this configuration of the candidate's
  // autotuned kernels.  One that fails now fails its trial, with a finding that names it.
  // REQUIRES: there was one trial of each plan.
  void repeat(int64_t configuration, int64_t num_configurations);
  // `report` is what the device reported since the call before.
  Call begin(const TrialPlan& plan, const worker::JudgeTrialAnswer& given, std::string_view report);
  // The call ended without a reply.
  EarlyOutcome fail(const Call& call, const Answer& answer);
  // Rules 1 to 5; the judge need not compare what is not admitted, nor a call with `lacking`, whose
  // trial is added here.
  EarlyOutcome admit(Call& call, const worker::CandidateRunAnswer& run);
  // Rules 6 and 7.  REQUIRES: the call was admitted, and has no `lacking`.
  EarlyOutcome add(Call call, const worker::CandidateRunAnswer& run,
                   worker::JudgeCheckAnswer checked);
  // The judge could not read what the candidate process gave it.
  task::Outcome reject(Call call, std::string detail);
  // `report` is what the device reported while the judge compared.
  EarlyOutcome check_idle(std::string_view report) const;
  // A trial that cannot be made, or whose end does not count; `why` may be null.
  void fail(const TrialPlan& plan, const task::Outcome* why);

  // Rule 8, and the shares of trials that passed.  REQUIRES: one trial of each plan.
  task::Outcome outcome();
  // An outcome that was known early, with the trials before it.  One of these that failed beats
  // `unsupported`.
  task::Outcome with_trials(task::Outcome early);
  // The first lack of the device's in a trial that counts, if any.
  const EarlyOutcome& lacking() const { return lacking_; }
  // A trial that counts failed, and not by what the device lacks.
  bool has_failed() const;

  // False for a trial that may fail without a loss.
  bool counts(const TrialPlan& plan) const;
  // A trial of special values asks little, and must not lift the q of a candidate that fails all
  // others.
  bool is_pointless(const TrialPlan& plan) const;
  // The policy leaves all of PyTorch.
  bool may_use_all() const { return policy_.operators.contains("*"); }
  const std::vector<task::Trial>& all() const { return trials_; }
  const std::map<std::string, int64_t>& aten_ops() const { return aten_ops_; }

 private:
  // Configurations of autotuned kernels beside the first.
  struct Repetition {
    int64_t configuration;
    int64_t num_configurations;
  };

  task::Trial trial_of(const TrialPlan& plan) const;
  void put(task::Trial trial, const std::string& taken);
  task::KernelFinding configuration_finding(const std::string& taken) const;
  EarlyOutcome note_aten(const std::map<std::string, int64_t>& calls);
  EarlyOutcome made_without_kernel(const Call& call, const worker::CandidateRunAnswer& run) const;

  const JudgePlan& plan_;
  const RunPolicy& policy_;
  const StageLimits& limits_;
  const Program& program_;

  std::vector<task::Trial> trials_;
  std::map<std::string, int64_t> aten_ops_;
  int64_t last_number_ = 0;  // The device's number of the call before.
  EarlyOutcome lacking_;     // The first, of the trials that count.
  std::optional<Repetition> repetition_;
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_TRIALS_H_
