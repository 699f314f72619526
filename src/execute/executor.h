// SPDX-License-Identifier: Apache-2.0
//
// Executor: the stages that need a child process, one function each.
//
// Every stage either passes and returns the input of the next stage, or decides the candidate's
// outcome (`EarlyOutcome`).  An Error means a failure of the environment, not of the candidate.
#ifndef MC_EXECUTE_EXECUTOR_H_
#define MC_EXECUTE_EXECUTOR_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/result.h"
#include "execute/children.h"
#include "execute/decode.h"
#include "execute/device_process.h"
#include "task/correctness.h"
#include "task/outcome.h"
#include "worker/protocol.h"

namespace mc::execute {

template <typename T>
using Stage = Result<std::variant<T, task::Outcome>>;

struct StageLimits {
  double inspect_s = 20;
  double load_s = 60;
  double forward_s = 30;
  double candidate_s = 120;  // All responses of one candidate together, in wall-clock time.
  double judge_s = 300;
  ChildLimits child{};
  bool device_reports = false;  // True if the device reports findings in kernels.
  bool is_recorded = false;     // True if it records the commands of candidates.
  // Patterns of the PyTorch kernels that candidate processes may launch on the device.
  std::vector<std::string> foreign_kernels{};
};

// A candidate's process, and the device process that serves it.
struct CandidateProcess {
  Session session;
  std::unique_ptr<DeviceProcess> device;
};

struct JudgeOptions {
  task::Correctness correctness;
  double cost_max = 6e7;  // Operations of one forward pass (python/harness/judge/cost.py).
  int64_t bytes_max = int64_t{8} << 20;  // The bytes of its inputs and outputs.
  bool tf32 = false;                     // True if factors of fp32 products may be rounded to TF32.
};

// The constructor arguments of a task's models at each size at which it may be judged, the main
// size first.  They are found without a judge or a device (python/harness/judge/initials.py).
struct Initials {
  std::vector<worker::Tree> trees;
  Fd region;  // Sealed, so that all candidates can share it.
};

// The constructor arguments of a model at one shape, from the judge.
using Initial = worker::Response<worker::JudgeInitRequest>;
// A judge with an open task.  It never runs candidate code, so it serves one candidate after
// another.
class Judge {
 public:
  // For tests, `plan` replaces the plan of begin().
  explicit Judge(Session session, JudgePlan plan = {})
      : session_(std::move(session)), plan_(std::move(plan)) {}
  // Begins a candidate: from now on weights, inputs and expected outputs follow from its secret
  // seed, and nothing of the previous candidate is left.
  Status begin(uint64_t seed, double limit_s);
  // Appends a trial at one more shape, with a name of python/harness/judge/shapes.py (`other`), to
  // this candidate's plan.  False where the task cannot be judged at it.  `kept` are sizes that the
  // shape "named" leaves at the task's own values.
  Result<bool> offer(const std::string& shape, const std::set<int64_t>& kept, double limit_s);
  // REQUIRES: begin() returned ok.
  const JudgePlan& plan() const { return plan_; }
  // Facts about the task, for other judges of it (open_judge).
  const std::string& known() const { return known_; }
  Result<Initial> init(int shape, double limit_s);
  // Sends one of the judge's requests of protocol.json.  Any result other than its response becomes
  // an Error: a judge that fails is not the candidate's fault.
  template <typename Request>
  Result<worker::Response<Request>> call(const Request& request, double limit_s,
                                         const Fd* region = nullptr) {
    MC_CHECK((region != nullptr) == Request::kHasRegion);
    MC_TRY(Reply reply, reply_to(request.to_json(), region, limit_s), "judge");
    return worker::parse_response<Request>(std::move(reply));
  }

  // Releases the process, for use as another task's judge.
  Session take_session() && { return std::move(session_); }

 private:
  Result<Reply> reply_to(const std::string& request, const Fd* region, double limit_s);

  Session session_;
  JudgePlan plan_;
  std::string known_;
};

// The rules of a policy (legality/policy.h) for a run.
struct RunPolicy {
  std::string name;
  // Operators that may run in forward: "empty"; "*" for all.
  std::set<std::string, std::less<>> operators;
  int own_launches_min = 0;  // The least number in each forward.
  // Further operators that __init__ may call to prepare the state of forward.
  std::set<std::string, std::less<>> init_operators{};
};

struct Library {
  std::string key;
  std::string module;
  std::filesystem::path path;
};

// Attributes of the device that a candidate is written for, by their names in PyTorch, where
// another device runs it (python/harness/worker/described.py).
using Described = std::map<std::string, int64_t>;

struct Program {
  std::string source;
  std::vector<Library> libraries;
  Locate locate;
  // The rest of StageLimits::candidate_s; null where the time is not limited.
  worker::TimeBudget* time = nullptr;
  Described described{};

  // True if nothing is compiled before the run: the rules allow this only for Triton kernels.
  bool is_in_triton() const { return libraries.empty(); }
};

// The result of the trials at one shape alone.
struct Tried {
  task::Outcome outcome;  // Passed, or the reason of the failure.
  double work_s = 0;      // Processor time of one forward's kernels, if all trials passed.
};

struct Measured {
  task::Outcome outcome = task::Infra{"not measured"};
  std::map<std::string, int64_t> aten_ops;
  int64_t memory_peak_bytes = 0;
  std::string output_tail;
  task::StateMatch state;
  // The live process of a candidate that passed, if no trial that does not count has damaged its
  // state.  The device process, if any, must be returned (give_back_device).
  std::optional<Session> candidate;
  std::unique_ptr<DeviceProcess> device = nullptr;
  // The reason why the judge could not check the candidate process's outputs.  The environment may
  // be at fault: the outcome counts only where a new judge cannot check the outputs of a new
  // candidate process either.
  std::optional<Error> check_error;
  bool has_failed = false;  // True if a trial that counts failed, whatever the outcome is.
  // True if the time ran out before all configurations of autotuned kernels were tried.
  bool are_configurations_left = false;
  // The time for compiling kernels during calls, according to the candidate process.
  double compile_s = 0;
  // The recorded commands, where the candidate is recorded and the device process is alive.
  std::optional<Result<CandidateRecording>> recording{};
};

// The outcome of a candidate whose device process ended in the second attempt, too.
task::Outcome ended_device(const Error& error);

// Called at points where other evaluations may use the device.
using Pause = std::function<void(Session& candidate)>;

// How a compiled baseline runs the task's Model.
struct CompiledOptions {
  std::string task_source;
  std::string mode;   // The mode of torch.compile.
  bool tf32 = false;  // True if it may use TF32.
};

class Executor {
 public:
  // `warm_judges` run under `limits.child`; null where none are kept.
  Executor(Zygotes zygotes, WarmPool* warm_judges, StageLimits limits)
      : zygotes_(zygotes), warm_judges_(warm_judges), limits_(std::move(limits)) {}

  // Inspects a candidate or a task with CPython's ast.  `policy_json` is {"python": rules}, or {}
  // without rules.
  Stage<Inspection> inspect(const std::string& source, const std::string& policy_json);

  // Starts a candidate process and its device process.
  Result<CandidateProcess> candidate(const Program& program);
  // Takes a judge that was started in advance, where such are kept.  kWait waits for one (the
  // caller must not hold a turn of the device, since starting one needs a turn); kIfReady starts a
  // new judge where none is ready.
  enum class Acquire { kWait, kIfReady };
  Result<Session> judge(Acquire acquire);

  // The memory of a task's call, estimated without the device; zeros where that is not possible.
  Result<worker::CallMemory> estimate(Session& session, const std::string& task_source,
                                      const JudgeOptions& options);
  // Opens a task.  `session` has no secret yet; it may be a former judge of another task.  `known`
  // are the facts that a judge of the same task found with the same options (Judge::known).  The
  // only outcome is `Unsupported`, for a task that cannot be made to fit.
  Stage<std::unique_ptr<Judge>> open_judge(Session session, const std::string& task_source,
                                           const JudgeOptions& options,
                                           const std::string& known = {});

  // Finds the constructor arguments.  The only outcome is `Unsupported`, for a task that cannot be
  // made to fit.
  Stage<Initials> initials(const std::string& task_source, const JudgeOptions& options);
  // The recorder's response, for compile::parse_extensions.
  Stage<std::string> record(const std::string& source, const Initials& initials,
                            const Described& described);

  // Runs every trial of the judge's plan for correctness, and records the ATen calls of each.  The
  // candidate knows `schedule_seed`, so the judge's seed must not follow from it.  `pause` is
  // called with the candidate's session before each step of a trial.
  Result<Measured> measure(
      CandidateProcess candidate, const Program& program, Judge& judge, const RunPolicy& policy,
      uint64_t schedule_seed, const Pause& pause = [](Session&) {});

  // Replays a recording in a device process of its own (DeviceProcess::replay).
  Result<worker::DeviceReplayResponse> replay(const Fd& data, const task::Correctness& correctness);

  // Runs only the trials at the shape of the plan's last trial, in a new candidate process, with
  // `forward_s` as the limit of each.
  Result<Tried> measure_last(const Program& program, Judge& judge, const RunPolicy& policy,
                             uint64_t schedule_seed, double forward_s);

  // Starts a process of the task's own Model under torch.compile, to be timed at the main shape;
  // start_candidate() does the same for a candidate.
  Result<Session> start_compiled(Judge& judge, const CompiledOptions& options);
  // An error where a new process cannot create a context on the device.  REQUIRES: the backend has
  // one.
  Status probe_device();
  // Ends the idle device processes.
  void end_idle();
  // Keeps a device process for another candidate, if it is clean.  An error where one of its checks
  // failed (DeviceProcess::failed_check): the candidate's outcome does not count then.
  Status give_back_device(std::unique_ptr<DeviceProcess> device);
  Stage<CandidateProcess> start_candidate(const Program& program, Judge& judge,
                                          const RunPolicy& policy, uint64_t schedule_seed);

  const StageLimits& limits() const { return limits_; }

 private:
  // Device processes without a candidate.
  struct Idle {
    std::mutex mutex;
    std::vector<std::unique_ptr<DeviceProcess>> devices;  // Guarded by mutex.
  };

  Result<std::unique_ptr<DeviceProcess>> device_process();
  Status call_baseline(Session& session, const std::string& request, const Fd* region) const;

  Zygotes zygotes_;
  WarmPool* warm_judges_;
  std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();
  // Constant after construction.
  StageLimits limits_;
};

// True if a task's source may change settings of PyTorch that hold for the whole process: a process
// that ran it cannot serve another task.
bool changes_settings(std::string_view task_source);

}  // namespace mc::execute

#endif  // MC_EXECUTE_EXECUTOR_H_
