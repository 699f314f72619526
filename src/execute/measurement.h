// SPDX-License-Identifier: Apache-2.0
//
// Measurement: one candidate process against one judge, over every trial of the judge's plan.
#ifndef MC_EXECUTE_MEASUREMENT_H_
#define MC_EXECUTE_MEASUREMENT_H_

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/executor.h"

namespace mc::execute {

class Measurement {
 public:
  Measurement(const StageLimits& limits, const Program& program, Judge& judge,
              const RunPolicy& policy, uint64_t schedule_seed, Session session,
              DeviceProcess* device = nullptr);

  // Drives the candidate process to its end.  An Error is the judge's or the machine's failure.
  // `pause` as in Executor::measure.
  Result<Measured> run(const Pause& pause);

  // Only the plan's last trial.
  Result<Tried> run_last();

  // Only loads the candidate and builds it at the main shape.
  Stage<Session> start();

 private:
  // Each returns the outcome where that is known early.
  using EarlyOutcome = std::optional<task::Outcome>;
  using RunAnswer = worker::CandidateRunAnswer;
  using Checked = worker::Response<worker::JudgeCheckQuestion>;
  Result<EarlyOutcome> load();
  Result<EarlyOutcome> build(int shape);
  Result<EarlyOutcome> run_trial(const TrialPlan& plan);
  EarlyOutcome refused(const task::Outcome& failure, const TrialPlan& plan);
  bool counts(const TrialPlan& plan) const;
  const task::Outcome* cannot_run(const TrialPlan& plan) const;  // Why; null where it can.
  task::Trial trial_of(const TrialPlan& plan) const;
  void fail(const TrialPlan& plan, const task::Outcome& outcome);
  EarlyOutcome note_aten(const std::map<std::string, int64_t>& calls);
  bool may_run(std::string_view operation) const;
  EarlyOutcome lacks_launch(const RunAnswer& run) const;
  static EarlyOutcome unsupported(const std::vector<task::KernelFinding>& findings);
  EarlyOutcome fatal_fault(const std::string& sticky,
                           const std::vector<task::KernelFinding>& findings);
  EarlyOutcome note_record(std::vector<task::KernelFinding>& findings);
  bool may_use_all() const;  // The policy leaves all of PyTorch.
  EarlyOutcome host_made() const;
  EarlyOutcome constant_answer() const;
  Result<Checked> check(const RunAnswer& run, const Fd& region, int trial_index);
  task::Outcome uncheckable(Error error, task::Trial trial);
  Result<Answer> ask_to_build(int shape, const Initial& init);
  Result<Answer> ask_to_run(const TrialPlan& plan,
                            const worker::Response<worker::JudgeTrialQuestion>& given);
  Result<Answer> take_outputs(Answer answer);
  Result<EarlyOutcome> forbidden_there();
  template <typename Question>
  Answer ask(const Question& question, const Fd* region, double limit_s);
  template <typename Question>
  Result<worker::Response<Question>> ask_judge(const Question& question);
  task::Outcome out_of_memory(const char* stage) const;

  std::vector<task::KernelFinding> new_findings();
  static double share_passed(std::span<task::Trial> trials);
  task::Outcome conclude();
  bool lacks_there(const task::Outcome& outcome, std::string& what);
  Measured finish(task::Outcome outcome);

  // Constant after construction.
  const StageLimits& limits_;
  const Program& program_;
  Judge& judge_;
  const RunPolicy& policy_;
  uint64_t schedule_seed_;

  Session session_;
  DeviceProcess* device_;     // Null where the candidate process has the device itself.
  int64_t launches_own_ = 0;  // The last call's.
  int64_t calls_there_ = 0;   // The candidate process's by way of the device process.
  std::optional<int64_t> bytes_to_host_before_;  // There were inputs.
  std::set<int> shapes_built_;
  std::map<int, task::Outcome> shapes_refused_;  // The constructor refused them; they do not count.
  std::optional<task::Outcome> spoilt_by_;       // At a shape that does not count.
  bool has_thrown_ = false;                      // Likewise, by an exception alone.
  std::vector<task::Trial> trials_;
  std::map<std::string, int64_t> aten_ops_;
  task::StateMatch state_;          // At the main shape.
  std::optional<CallRecord> call_;  // The emulator's, of the last call.
  int64_t num_calls_ = 0;
  double forward_work_s_ = 0;  // The last call's, on the emulator.
  std::optional<Error> check_error_;
  bool is_judge_crowded_out_ = false;  // The candidate process's hold on the device is the cause.
  size_t report_read_ = 0;             // Bytes of the emulator's report that were decoded.
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_MEASUREMENT_H_
