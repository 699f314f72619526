// SPDX-License-Identifier: Apache-2.0
//
// Measurement: runs one candidate process against one judge, over every trial of the judge's plan.
#ifndef MC_EXECUTE_MEASUREMENT_H_
#define MC_EXECUTE_MEASUREMENT_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "execute/executor.h"
#include "execute/trials.h"

namespace mc::execute {

class Measurement {
 public:
  Measurement(const StageLimits& limits, const Program& program, Judge& judge,
              const RunPolicy& policy, uint64_t schedule_seed, Session session,
              DeviceProcess& device);

  // Runs all trials.  An Error is the judge's or the machine's failure.  `pause` as in
  // Executor::measure.
  Result<Measured> run(const Pause& pause);

  // Runs only the trials at the shape of the plan's last trial.
  Result<Tried> run_last();

  // Only loads the candidate and builds it at the main shape.
  Stage<Session> start();

 private:
  using RunResponse = worker::CandidateRunResponse;
  using Checked = worker::Response<worker::JudgeCheckRequest>;
  Result<EarlyOutcome> load();
  Result<EarlyOutcome> build(int shape);
  Result<EarlyOutcome> run_trial(const TrialPlan& plan, const Pause& pause);
  Result<EarlyOutcome> run_configurations(const Pause& pause);
  std::vector<TrialPlan> plans_of_configurations() const;
  bool spent_up(double spent_s);
  void note_configurations(const RunResponse& run);
  // The reason why the trial cannot run; null where it can.
  const task::Outcome* cannot_run(const TrialPlan& plan) const;
  Result<Checked> check(const RunResponse& run, const Fd& region, const Trials::Call& call);
  task::Outcome uncheckable(Error error, Trials::Call call);
  Result<CallResult> request_build(int shape, const Initial& init);
  // A call that returned outputs, or the reason why it did not.
  struct Ran {
    RunResponse result;
    Fd region;
  };
  Result<std::variant<Ran, CallResult>> request_run(
      const TrialPlan& plan, const worker::Response<worker::JudgeTrialRequest>& given);
  Result<std::variant<Ran, CallResult>> take_outputs(Reply result, int64_t launches);
  Result<EarlyOutcome> forbidden_there();
  template <typename Request>
  CallResult call(const Request& request, const Fd* region, double limit_s);
  template <typename Request>
  Result<worker::Response<Request>> call_judge(const Request& request);
  task::Outcome out_of_memory(const char* stage) const;

  std::string_view fresh_report();  // The part of the report since the last call.
  std::vector<task::KernelFinding> new_findings();
  bool lacks_there(const task::Outcome& outcome, std::string& what);
  Measured finish(task::Outcome outcome);

  // Constant after construction.
  const StageLimits& limits_;
  const Program& program_;
  Judge& judge_;
  const RunPolicy& policy_;
  uint64_t schedule_seed_;

  Session session_;
  DeviceProcess& device_;
  int64_t calls_there_ = 0;                      // Calls of forward through the device process.
  std::optional<int64_t> bytes_to_host_before_;  // The value when the first inputs arrived.
  std::set<int> shapes_built_;
  // Shapes that the constructor rejected; they do not count.
  std::map<int, task::Outcome> shapes_refused_;
  std::optional<task::Outcome> spoilt_by_;  // The failure at a shape that does not count.
  bool has_thrown_ = false;                 // True after an exception that only failed its trial.
  Trials trials_;
  task::StateMatch state_;  // The match at the main shape.
  double kernel_s_ = 0;     // The kernels' time in the last call.
  std::optional<Error> check_error_;
  int64_t configuration_ = 0;       // The configuration of autotuned kernels in the next call.
  int64_t num_configurations_ = 1;  // The most that one autotuned kernel had in a call.
  bool are_configurations_left_ = false;
  // The time for compiling kernels during calls, according to the candidate process.
  double compile_s_ = 0;
  // True if the candidate process holds too much device memory for the judge.
  bool is_judge_crowded_out_ = false;
  size_t report_read_ = 0;  // Bytes of the device's report that were read.
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_MEASUREMENT_H_
