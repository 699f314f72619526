// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  Two zygotes serve all threads.  Each evaluation has its own inspector,
// recorder and candidate process.  Judges are kept and reused, since opening a task (reducing its
// shapes, building the reference) costs more than judging a candidate.  A judge never runs
// candidate code, so its reuse is safe.  A failure that is not the candidate's is followed by one
// more attempt, with a new judge and a new candidate process.  On a device, judges are started in
// advance, because a context takes a third of a second.
#include "eval/pipeline.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "core/cancel.h"
#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/layout.h"
#include "eval/baseline_store.h"
#include "eval/devices.h"
#include "eval/evaluation.h"
#include "eval/known_tasks.h"
#include "eval/machine.h"
#include "eval/memory_need.h"
#include "eval/musa_dialect.h"
#include "eval/preparer.h"
#include "eval/race_check.h"
#include "eval/recording.h"
#include "eval/scheduler.h"
#include "execute/children.h"
#include "execute/decode.h"
#include "execute/executor.h"
#include "legality/policy.h"
#include "task/musa_device.h"

namespace mc::eval {
namespace {

constexpr double kPtxClockFactor = 4;

execute::StageLimits stage_limits(const Options& options, const Machine& machine) {
  execute::StageLimits limits;
  limits.load_s = options.limits.load_s;
  limits.forward_s = options.limits.forward_s;
  limits.candidate_s = options.limits.candidate_s;
  limits.judge_s = options.limits.judge_s;
  limits.device_reports = machine.has_ptx_device;
  limits.is_recorded = options.on_recorded != nullptr;
  // The limit is in wall-clock time, of which processes that run at the same time take their share.
  if (machine.has_ptx_device) limits.forward_s *= kPtxClockFactor;
  limits.child.memory_bytes = options.limits.memory_bytes;
  limits.child.tmp_bytes = options.limits.tmp_bytes;
  limits.child.threads_max = options.limits.threads_max;
  limits.child.weak_sandbox = options.allow_weak_sandbox;
  // These may be below a folder that the sandbox empties, such as /tmp.
  limits.child.visible = {
      cache_directory().string(), machine.layout.prefix.string(),
      std::filesystem::weakly_canonical(machine.layout.share("python/harness")).string(),
      machine.pytorch.root.parent_path().string(), machine.pytorch.python_include.string()};
  return limits;
}

constexpr size_t kSourceMax = 1 << 20;

int num_cores() { return static_cast<int>(std::thread::hardware_concurrency()); }

// A directory that all users of a device of this machine share, in whatever container.
constexpr const char* kLocks = "/tmp";

std::optional<DeviceLock> lock_of(const Device& device, const Progress& progress) {
  auto lock = DeviceLock::open(kLocks, device.id);
  if (lock) return std::move(*lock);
  progress("times are wrong if another musacoder uses this device: " + lock.error().message);
  return std::nullopt;
}

// One state for each device, or one for the CPU.
std::unique_ptr<Devices> devices_of(const Machine& machine, const Options& options,
                                    execute::Zygote& trusted, execute::Zygote& candidates,
                                    const execute::StageLimits& limits, const Progress& progress) {
  std::vector<int64_t> capacities;
  std::vector<std::optional<DeviceLock>> locks;
  for (const Device& device : machine.devices) {
    capacities.push_back(capacity_of(device.bytes));
    locks.push_back(lock_of(device, progress));
  }
  if (capacities.empty()) capacities = {Schedule::kAll};
  auto scheduler = std::make_unique<Scheduler>(capacities, std::move(locks));
  std::vector<std::unique_ptr<DeviceState>> states;
  for (size_t i = 0; i < capacities.size(); ++i) {
    const bool is_cpu = machine.devices.empty();
    states.push_back(std::make_unique<DeviceState>(
        is_cpu ? nullptr : &machine.devices[i], DeviceSchedule{*scheduler, i},
        execute::Zygotes(trusted, candidates), is_cpu ? nullptr : &trusted,
        is_cpu ? 0 : static_cast<size_t>(options.spares), limits));
  }
  return std::make_unique<Devices>(std::move(scheduler), std::move(states), progress);
}

// Everything that a judge's facts about a task depend on beside its options, its own code included.
std::string versions_of(const Machine& machine) {
  std::vector<std::filesystem::path> sources;
  for (const char* room : {"judge", "timing", "worker"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(machine.layout.share("python/harness") / room)) {
      if (entry.path().extension() == ".py") sources.push_back(entry.path());
    }
  }
  std::ranges::sort(sources);
  std::string hash = content_hash(
      {machine.pytorch.version, machine.architecture, task::to_string(machine.backend)});
  for (const auto& source : sources) {
    const auto text = read_file(source, kSourceMax);
    hash = content_hash({hash, text ? *text : ""});
  }
  const int64_t bytes = machine.devices.empty() ? 0 : machine.devices.front().bytes;
  return fmt::format("{} {} {} {}", hash, bytes, machine.cost_max, machine.bytes_max);
}

}  // namespace

namespace {

Result<Recording> recording_of(const task::Verdict& verdict,
                               Result<execute::CandidateRecording> recorded) {
  if (!recorded) return recorded.error();
  MC_TRY(std::string data,
         read_file("/proc/self/fd/" + std::to_string(recorded->data.get()), kRecordingBytesMax),
         "the recording");
  return Recording{verdict, std::move(recorded->device), std::move(data)};
}

Options race_options(const Options& options, task::Backend checker) {
  Options own = options;
  own.backend = checker;
  own.devices = kAllDevices;
  own.race_check = RaceCheckMode::kOff;
  own.timing.enabled = false;
  own.strict = false;
  own.is_portable = false;
  own.on_recorded = nullptr;
  return own;
}

// The judge of race checks: a pipeline of another backend, in this process.
Result<RaceJudge> race_judge(const Options& options) {
  MC_TRY(auto created, Pipeline::create(options, [](std::string_view) {}), "race check");
  // Shared by the copies of the lambda, which std::function requires to be copyable.
  const std::shared_ptr<Pipeline> pipeline = std::move(created);
  return RaceJudge([pipeline](const RaceSubject& subject) {
    return pipeline->evaluate(subject.task, subject.candidate,
                              race_correctness(subject.correctness), subject.dialect);
  });
}

}  // namespace

struct Pipeline::State {
  Options options;
  SeedKey key;
  Machine machine;
  legality::Policy policy;
  MusaDialect musa;
  execute::RunPolicy run_policy;
  std::unique_ptr<execute::Zygote> trusted;
  std::unique_ptr<execute::Zygote> candidates;
  std::unique_ptr<Devices> devices;  // Uses the machine and the zygotes.
  BaselineStore baselines;
  Preparer preparer{options, policy, musa, machine, devices->executor()};
  KnownTasks known_tasks{cache_directory() / "tasks", versions_of(machine)};
  std::unique_ptr<const RaceChecker> race_checker{};  // Null where races are not checked.

  std::vector<std::string> protections_off() const;
  void complete(task::Verdict& verdict) const;
  Preparation prepare(const task::Task& task, const task::Candidate& candidate,
                      const task::Correctness& correctness, std::optional<task::Dialect> dialect);
  task::Verdict measure(const PreparedCandidate& prepared);
  // The verdict of `judge`, with the result of a race check beside it.
  task::Verdict with_race_check(RaceSubject subject,
                                const std::function<task::Verdict()>& judge) const;
};

std::vector<std::string> Pipeline::State::protections_off() const {
  std::vector<std::string> missing = trusted->protections_off();
  std::ranges::copy(candidates->protections_off(), std::back_inserter(missing));
  std::ranges::sort(missing);
  missing.erase(std::ranges::unique(missing).begin(), missing.end());
  return missing;
}

// Adds the fields that do not depend on the candidate.
void Pipeline::State::complete(task::Verdict& verdict) const {
  verdict.telemetry.pytorch = trusted->pytorch_version();
  verdict.telemetry.protections_off = protections_off();
}

Pipeline::Pipeline(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pipeline::~Pipeline() = default;

Result<std::unique_ptr<Pipeline>> Pipeline::create(const Options& options,
                                                   const Progress& progress) {
  MC_TRY(const Layout layout, find_layout(), "pipeline");
  MC_TRY(legality::Policy policy,
         legality::load_policy(layout.share("data/policy"), options.policy), "pipeline");
  MC_TRY(MusaDialect musa, MusaDialect::create(layout.share("data/musify")), "pipeline");
  MC_TRY(Machine machine, find_machine(options, progress), "pipeline");
  execute::RunPolicy run_policy{policy.name(), policy.operators, policy.own_launches_min,
                                policy.init_operators};
  progress("starting PyTorch");
  MC_TRY(auto zygotes,
         execute::Zygote::start_pair(zygote_options(machine, execute::Roles::kTrusted),
                                     zygote_options(machine, execute::Roles::kCandidates)),
         "pipeline");
  std::unique_ptr<execute::Zygote> trusted = std::move(zygotes.trusted);
  std::unique_ptr<execute::Zygote> candidates = std::move(zygotes.candidates);
  MC_TRY_VOID(trusted->await_start(), "pipeline");
  MC_TRY_VOID(candidates->await_start(), "pipeline");
  execute::StageLimits limits = stage_limits(options, machine);
  limits.foreign_kernels = policy.kernels.foreign_allowed;
  auto devices = devices_of(machine, options, *trusted, *candidates, limits, progress);
  const SeedKey key = options.seed ? SeedKey::from(*options.seed) : SeedKey::random();
  auto state = std::unique_ptr<State>(
      new State{options, key, std::move(machine), std::move(policy), std::move(musa),
                std::move(run_policy), std::move(trusted), std::move(candidates),
                std::move(devices), BaselineStore(cache_directory() / "baselines")});
  state->options.race_check = RaceCheckMode::kOff;
  if (eval::checks_races(options, state->machine, num_cores())) {
    state->options.race_check = RaceCheckMode::kOn;
    state->race_checker = std::make_unique<const RaceChecker>(
        [own = race_options(options, *state->machine.race_checker)] { return race_judge(own); });
  }
  return std::unique_ptr<Pipeline>(new Pipeline(std::move(state)));
}

std::string Pipeline::description() const {
  return to_string(target_of(state_->machine, state_->policy.version, {}));
}

size_t Pipeline::num_devices() const { return state_->devices->size(); }

int Pipeline::jobs_wanted() const {
  const auto num_devices = static_cast<int>(state_->machine.devices.size());
  return std::max({1, num_devices, std::min(num_cores(), num_devices * kJobsADevice)});
}

bool Pipeline::checks_races() const { return state_->race_checker != nullptr; }

bool Pipeline::only_prepares() const { return !state_->options.architecture.empty(); }

Status Pipeline::check_machine() {
  const execute::ChildLimits limits = stage_limits(state_->options, state_->machine).child;
  MC_TRY_VOID(state_->trusted->spawn(execute::Role::kInspector, limits), "sandbox");
  MC_TRY_VOID(state_->candidates->spawn(execute::Role::kRecorder, limits), "sandbox");
  return ok();
}

Status Pipeline::check_task(const task::Task& task) {
  MC_TRY(const auto stage, state_->devices->executor().inspect(task.code, "{}"), "check");
  if (std::holds_alternative<task::Outcome>(stage)) {
    return Error{ErrorCode::kInvalidInput, "CPython's parser gives up on it"};
  }
  const auto& inspection = std::get<execute::Inspection>(stage);
  if (!inspection.syntax_error.empty()) {
    return Error{
        ErrorCode::kInvalidInput,
        "line " + std::to_string(inspection.syntax_location.line) + ": " + inspection.syntax_error};
  }
  const auto lacks = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) == names.end();
  };
  if (inspection.classes.empty()) {
    return Error{ErrorCode::kInvalidInput, "it defines no class Model, nor any other"};
  }
  for (const char* name : {"get_inputs", "get_init_inputs"}) {
    if (lacks(inspection.functions, name)) {
      return Error{ErrorCode::kInvalidInput, std::string("it defines no function ") + name};
    }
  }
  return ok();
}

Result<std::variant<Pipeline::Hygiene, task::Unsupported>> Pipeline::grade_task(
    const task::Task& task) {
  using Graded = std::variant<Hygiene, task::Unsupported>;
  State& state = *state_;
  const double limit_s = state.options.limits.judge_s;
  const Scheduler::Hold hold = state.devices->take("");
  DeviceState& device = state.devices->at(hold);
  MC_TRY(execute::Session session, device.executor.judge(execute::Executor::Acquire::kWait),
         "judge");
  const auto all = device.schedule.memory(Schedule::kAll);
  const auto turn = device.schedule.turn(Schedule::Use::kShared);
  MC_TRY(auto opened,
         device.executor.open_judge(
             std::move(session), task.code,
             judge_options(state.options.correctness, state.machine, state.options)),
         "open");
  if (auto* outcome = std::get_if<task::Outcome>(&opened)) {
    return Graded(std::get<task::Unsupported>(std::move(*outcome)));
  }
  execute::Judge& judge = *std::get<std::unique_ptr<execute::Judge>>(opened);
  MC_TRY_VOID(judge.begin(state.key.derive({task.code}), limit_s), "begin");
  MC_TRY(auto graded, judge.call(worker::JudgeGradeRequest(), limit_s), "grade");
  return Graded(Hygiene{judge.plan().grade, std::move(graded.body.as_initialised),
                        judge.plan().shapes.at(0).label});
}

Preparation Pipeline::prepare(const task::Task& task, const task::Candidate& candidate) {
  return prepare(task, candidate, state_->options.correctness, std::nullopt);
}

Preparation Pipeline::prepare(const task::Task& task, const task::Candidate& candidate,
                              const task::Correctness& correctness,
                              std::optional<task::Dialect> dialect) {
  return state_->prepare(task, candidate, correctness, dialect);
}

Preparation Pipeline::State::prepare(const task::Task& task, const task::Candidate& candidate,
                                     const task::Correctness& correctness,
                                     std::optional<task::Dialect> dialect) {
  Preparation preparation = preparer.prepare(task, candidate, correctness, dialect);
  const auto* verdict = std::get_if<task::Verdict>(&preparation);
  if (verdict != nullptr && std::holds_alternative<task::Infra>(verdict->outcome) &&
      !is_cancelled()) {
    preparation = preparer.prepare(task, candidate, correctness, dialect);
  }
  if (auto* decided = std::get_if<task::Verdict>(&preparation)) complete(*decided);
  return preparation;
}

Status Pipeline::can_judge(task::Dialect dialect) const {
  const Options& options = state_->options;
  const int warp = task::warp_threads(dialect, options.musa_architecture);
  if (warp == task::warp_threads(options.dialect, options.musa_architecture) &&
      (dialect == task::Dialect::kMusa || !state_->machine.compiles_musa)) {
    return ok();
  }
  return Error{ErrorCode::kInvalidInput,
               std::string("this program was started for the other dialect alone; start one for ") +
                   to_string(dialect)};
}

PreparedCandidate Pipeline::trusted(const task::Task& task, const task::Candidate& candidate,
                                    std::string module, std::string recorded,
                                    std::vector<compile::Artifact> artifacts) const {
  PreparedCandidate prepared{
      .task = task,
      .candidate = candidate,
      .target = target_of(state_->machine, state_->policy.version, artifacts),
      .source = std::move(module),
      .recorded = std::move(recorded),
      .artifacts = std::move(artifacts),
      .verdict = {}};
  prepared.verdict.task = task.id;
  prepared.verdict.candidate = candidate.id;
  prepared.verdict.candidate_hash = content_hash({prepared.source});
  prepared.verdict.backend = state_->machine.backend;
  prepared.verdict.protocol.dialect = state_->options.dialect;
  return prepared;
}

Status Pipeline::can_measure(const PreparedCandidate& prepared) const {
  const task::Protocol& protocol = prepared.verdict.protocol;
  const int warp = task::warp_threads(protocol.dialect, protocol.musa_architecture);
  if (warp != task::warp_threads(state_->options.dialect, state_->options.musa_architecture)) {
    return Error{ErrorCode::kInvalidInput,
                 "prepared for warps of " + std::to_string(warp) +
                     " threads; give --dialect and --musa-arch as prepare had them"};
  }
  const Target here = target_of(state_->machine, state_->policy.version, prepared.artifacts);
  if (prepared.target == here) return ok();
  return Error{ErrorCode::kInvalidInput,
               "prepared for " + to_string(prepared.target) + "; here is " + to_string(here)};
}

task::Verdict Pipeline::measure(const PreparedCandidate& prepared) {
  return measure(prepared, state_->options.correctness);
}

task::Verdict Pipeline::measure(const PreparedCandidate& prepared,
                                const task::Correctness& correctness) {
  MC_CHECK(can_measure(prepared));
  PreparedCandidate here = prepared;
  here.verdict.protocol.correctness = correctness;
  return state_->with_race_check(
      {prepared.task, prepared.candidate, correctness, prepared.verdict.protocol.dialect},
      [&] { return state_->measure(here); });
}

task::Verdict Pipeline::State::with_race_check(RaceSubject subject,
                                               const std::function<task::Verdict()>& judge) const {
  if (race_checker == nullptr) return judge();
  RaceCheck check = race_checker->start(std::move(subject));
  task::Verdict verdict = judge();
  check.finish(verdict);
  return verdict;
}

// The protocol is that of the prepared candidate's verdict.
task::Verdict Pipeline::State::measure(const PreparedCandidate& prepared) {
  MC_CHECK(options.architecture.empty());
  std::optional<Result<execute::CandidateRecording>> recorded;
  task::Verdict verdict = devices->measure(judge_key_of(prepared), [&](DeviceState& on) {
    EvaluationContext context{options,       key,       policy,      run_policy,
                              on.executor,   machine,   on.judges,   known_tasks,
                              on.nvml.get(), on.device, on.schedule, baselines};
    context.recording = &recorded;
    return eval::evaluate(context, prepared);
  });
  musa.restore(verdict, prepared.candidate);
  complete(verdict);
  if (recorded) options.on_recorded(recording_of(verdict, std::move(*recorded)));
  return verdict;
}

Result<Replayed> Pipeline::replay(const Recording& recording) {
  MC_CHECK(state_->options.is_portable);
  MC_TRY(const Fd data, make_memfd("recording", recording.data.size()), "replay");
  if (::pwrite(data.get(), recording.data.data(), recording.data.size(), 0) !=
      static_cast<ssize_t>(recording.data.size())) {
    return system_error(ErrorCode::kIo, "copy the recording");
  }
  const Scheduler::Hold hold = state_->devices->take("");
  DeviceState& device = state_->devices->at(hold);
  const auto turn = device.schedule.turn(Schedule::Use::kExclusive);
  auto found = device.executor.replay(data, recording.verdict.protocol.correctness);
  if (!found) return found.error();
  const auto locate = [](std::string_view file, uint64_t line, std::string_view) {
    return task::SourceLocation{std::string(file), static_cast<int>(line), 0, {}};
  };
  return Replayed{.device = std::move(found->device),
                  .commands = found->commands,
                  .calls = found->calls,
                  .outputs = found->outputs,
                  .equal = found->equal,
                  .differences = std::move(found->differences),
                  .errors = std::move(found->errors),
                  .unsupported = std::move(found->unsupported),
                  .findings = execute::decode_findings(found->report, locate)};
}

task::Verdict Pipeline::evaluate(const task::Task& task, const task::Candidate& candidate) {
  return evaluate(task, candidate, state_->options.correctness, std::nullopt);
}

task::Verdict Pipeline::evaluate(const task::Task& task, const task::Candidate& candidate,
                                 const task::Correctness& correctness,
                                 std::optional<task::Dialect> dialect) {
  MC_CHECK(check(correctness) && (!dialect || can_judge(*dialect)));
  return state_->with_race_check({task, candidate, correctness, dialect}, [&] {
    Preparation preparation = state_->prepare(task, candidate, correctness, dialect);
    if (auto* decided = std::get_if<task::Verdict>(&preparation)) return std::move(*decided);
    return state_->measure(std::get<PreparedCandidate>(preparation));
  });
}

Status set_up_machine(const Options& options, const Progress& progress) {
  MC_TRY(const Machine machine, find_machine(options, progress), "set-up");
  if (!checks_races(options, machine, num_cores())) return ok();
  const auto checker = find_machine(race_options(options, *machine.race_checker), progress);
  if (!checker) progress("verdicts will have no race check: " + checker.error().message);
  return ok();
}

}  // namespace mc::eval
