// SPDX-License-Identifier: Apache-2.0
//
// Executor: the stages that need a child process, each as one call.
//
// Every stage either passes with what the next one needs, or decides the candidate's outcome
// (`EarlyOutcome`).  An Error means that the world failed, not the candidate.
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
#include "task/verdict.h"
#include "worker/protocol.h"

namespace mc::execute {

template <typename T>
using Stage = Result<std::variant<T, task::Outcome>>;

struct StageLimits {
  double inspect_s = 20;
  double load_s = 60;
  double forward_s = 30;
  double candidate_s = 120;  // All answers of one candidate together, by the clock.
  double queue_s = 2;        // A batch that is not enqueued by then waits for the device.
  double judge_s = 300;
  ChildLimits child{};
  bool device_reports = false;  // It reports what it finds in kernels.
  bool is_recorded = false;     // It keeps what candidates send to it.
  // Patterns of the kernels of PyTorch's that candidate processes may launch there.
  std::vector<std::string> foreign_kernels{};
};

// A candidate's process, and the one that holds its device.
struct CandidateProcess {
  Session session;
  std::unique_ptr<DeviceProcess> device;
};

struct JudgeOptions {
  task::Correctness correctness;
  double cost_max = 6e7;  // Operations of one forward (python/harness/judge/cost.py).
  int64_t bytes_max = int64_t{8} << 20;  // The bytes of its inputs and outputs.
  bool tf32 = false;                     // Factors of fp32 products may be rounded to TF32.
};

// The arguments that a task's models are built from at each size at which it may be judged, the
// main one first; found without a judge or a device (python/harness/judge/initials.py).
struct Initials {
  std::vector<worker::Tree> trees;
  Fd region;  // Sealed: one serves all candidates.
};

// The arguments of a model at one shape, as the judge gave it.
using Initial = worker::Response<worker::JudgeInitQuestion>;
// The question to a candidate process about it.
worker::CandidateBuildQuestion build_question(int64_t shape, const Initial& init);

// A judge with an open task.  Never runs candidate code, so it serves one candidate after another.
class Judge {
 public:
  // `plan` as begin() would get it, for tests.
  explicit Judge(Session session, JudgePlan plan = {})
      : session_(std::move(session)), plan_(std::move(plan)) {}
  // Begins with a candidate: from now on weights, inputs and expected outputs come of its secret
  // seed, and nothing is left of the candidate before.
  Status begin(uint64_t seed, double limit_s);
  // Adds a trial at one more shape, by one of the names of python/harness/judge/shapes.py
  // (`other`), to this candidate's plan, at its end; whether the task can be judged there.  `kept`
  // are sizes that the shape "named" leaves as the task has them.
  Result<bool> offer(const std::string& shape, const std::set<int64_t>& kept, double limit_s);
  // REQUIRES: begin() returned ok.
  const JudgePlan& plan() const { return plan_; }
  // Facts that it found out about the task, for other judges of it (open_judge).
  const std::string& known() const { return known_; }
  Result<Initial> init(int shape, double limit_s);
  // Asks one of the judge's questions of protocol.json, and turns everything but its answer into an
  // Error: a judge that fails is the world's fault.
  template <typename Question>
  Result<worker::Response<Question>> ask(const Question& question, double limit_s,
                                         const Fd* region = nullptr) {
    MC_CHECK((region != nullptr) == Question::kHasRegion);
    MC_TRY(Reply reply, reply_to(question.to_json(), region, limit_s), "judge");
    return worker::parse_response<Question>(std::move(reply));
  }

  // The process, to become another task's judge.
  Session take_session() && { return std::move(session_); }

 private:
  Result<Reply> reply_to(const std::string& question, const Fd* region, double limit_s);

  Session session_;
  JudgePlan plan_;
  std::string known_;
};

// The demands of a policy (legality/policy.h) on a run.
struct RunPolicy {
  std::string name;
  std::set<std::string, std::less<>> operators;  // That may run in forward: "empty"; "*" for all.
  int own_launches_min = 0;                      // In each forward.
  // Those that may, besides, put in place in __init__ what forward uses.
  std::set<std::string, std::less<>> init_operators{};
};

struct Library {
  std::string key;
  std::string module;
  std::filesystem::path path;
};

// Attributes of the device that a candidate is written for, where the device that runs it is
// another one; by their names in PyTorch (python/harness/worker/described.py).
using Described = std::map<std::string, int64_t>;

struct Program {
  std::string source;
  std::vector<Library> libraries;
  Locate locate;
  // The rest of StageLimits::candidate_s; null where nothing limits it.
  worker::AnswerTime* time = nullptr;
  Described described{};

  // Nothing of it is compiled before it runs: the rules let only Triton's kernels do without.
  bool is_in_triton() const { return libraries.empty(); }
};

// The trials at one shape by themselves.
struct Tried {
  task::Outcome outcome;  // Passed, or why not.
  double work_s = 0;      // Processor time of the kernels of a forward, where all trials passed.
};

struct Measured {
  task::Outcome outcome = task::Infra{"not measured"};
  std::map<std::string, int64_t> aten_ops;
  int64_t memory_peak_bytes = 0;
  std::string output_tail;
  task::StateMatch state;
  // Alive, where the candidate passed and no trial that does not count spoilt it.  Its device, if
  // another process holds that, is to be given back (give_back_device).
  std::optional<Session> candidate;
  std::unique_ptr<DeviceProcess> device = nullptr;
  // Why the judge could not check what the candidate process gave it.  That may be the world's
  // fault: the outcome counts where a fresh judge cannot check what a fresh candidate process gives
  // it either.
  std::optional<Error> check_error;
  bool has_failed = false;  // A trial that counts, whatever the outcome is.
  // Configurations of autotuned kernels for which time was up.
  bool are_configurations_left = false;
  double compile_s = 0;  // Says the candidate process, of kernels that it compiled in calls.
  // The commands that it sent, where they are recorded and the device process lives.
  std::optional<Result<CandidateRecording>> recording{};
};

// The outcome of a candidate whose device process ended once more.
task::Outcome ended_device(const Error& error);

// Lets others use the device.
using Pause = std::function<void(Session& candidate)>;

// How a compiled baseline runs the task's Model.
struct CompiledOptions {
  std::string task_source;
  std::string mode;   // The mode of torch.compile.
  bool tf32 = false;  // True if it may use it.
};

class Executor {
 public:
  // `spare_judges` are under `limits.child`; null where none are kept.
  Executor(Zygotes zygotes, WarmPool* spare_judges, StageLimits limits)
      : zygotes_(zygotes), spare_judges_(spare_judges), limits_(std::move(limits)) {}

  // Findings of CPython's ast in a candidate or a task; `policy_json` is {"python": rules}, or {}
  // for none.
  Stage<InspectorAnswer> inspect(const std::string& source, const std::string& policy_json);

  // A new one, with a device process.
  Result<CandidateProcess> candidate(const Program& program);
  // A spare one, where spares are kept: kWait waits for it (the caller must have no turn of the
  // device, since a spare is made under one), kIfReady makes one where none is ready.
  enum class Spare { kWait, kIfReady };
  Result<Session> judge(Spare spare);

  // The memory of a call of a task's, found without the device; zeros where that cannot be done.
  Result<worker::CallMemory> estimate(Session& session, const std::string& task_source,
                                      const JudgeOptions& options);
  // `session` has nothing secret yet; it may have been another task's judge.  `known` is what a
  // judge of the same task found out, by the same options (Judge::known).  Decides only
  // `Unsupported` (a task that cannot be made to fit).
  Stage<std::unique_ptr<Judge>> open_judge(Session session, const std::string& task_source,
                                           const JudgeOptions& options,
                                           const std::string& known = {});

  // Decides only `Unsupported` (a task that cannot be made to fit).
  Stage<Initials> initials(const std::string& task_source, const JudgeOptions& options);
  // The recorder's answer, for compile::parse_extensions.
  Stage<std::string> record(const std::string& source, const Initials& initials,
                            const Described& described);

  // Correctness on every trial of the judge's plan, and the ATen calls of each.  `candidate` is
  // told `schedule_seed`: the judge's seed must not follow from it.  `pause` is called before each
  // step of a trial, with the candidate's session.
  Result<Measured> measure(
      CandidateProcess candidate, const Program& program, Judge& judge, const RunPolicy& policy,
      uint64_t schedule_seed, const Pause& pause = [](Session&) {});

  // Replays a recording in a device process of its own (DeviceProcess::replay).
  Result<worker::DeviceReplayAnswer> replay(const Fd& data, const task::Correctness& correctness);

  // The plan's last trial alone, by a new candidate process, with `forward_s` for it.
  Result<Tried> measure_last(const Program& program, Judge& judge, const RunPolicy& policy,
                             uint64_t schedule_seed, double forward_s);

  // Processes that are ready to be timed at the main shape: the task's own Model under
  // torch.compile, and a candidate.
  Result<Session> start_compiled(Judge& judge, const CompiledOptions& options);
  // An error where a new process gets no context on the device.  REQUIRES: the backend has one.
  Status probe_device();
  // Ends the device processes that are kept.
  void end_idle();
  // Keeps a device process for another candidate, where it is clean.
  void give_back_device(std::unique_ptr<DeviceProcess> device);
  Stage<CandidateProcess> start_candidate(const Program& program, Judge& judge,
                                          const RunPolicy& policy, uint64_t schedule_seed);

  const StageLimits& limits() const { return limits_; }

 private:
  // Device processes that wait for their next candidate.
  struct Idle {
    std::mutex mutex;
    std::vector<std::unique_ptr<DeviceProcess>> devices;  // Guarded by mutex.
  };

  Result<std::unique_ptr<DeviceProcess>> device_process();
  Status ask_baseline(Session& session, const std::string& question, const Fd* region) const;

  Zygotes zygotes_;
  WarmPool* spare_judges_;
  std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();
  // Constant after construction.
  StageLimits limits_;
};

// True if a task's text may set what PyTorch keeps for the whole process: a process that ran it is
// of no use to another task.
bool changes_settings(std::string_view task_source);

}  // namespace mc::execute

#endif  // MC_EXECUTE_EXECUTOR_H_
