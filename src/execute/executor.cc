// SPDX-License-Identifier: Apache-2.0
#include "execute/executor.h"

#include <algorithm>
#include <array>
#include <csignal>

#include <nlohmann/json.hpp>

#include "core/cancel.h"
#include "execute/failure.h"
#include "execute/measurement.h"

namespace mc::execute {
namespace {

using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kCompilerMemoryBytes = int64_t{16} << 30;
constexpr int64_t kCompilerTmpBytes = int64_t{1} << 30;
constexpr int kCompilerThreads = 512;

// The limits for torch.compile, which starts processes and writes files.
ChildLimits compiling(ChildLimits child) {
  child.memory_bytes = std::max(child.memory_bytes, kCompilerMemoryBytes);
  child.tmp_bytes = std::max(child.tmp_bytes, kCompilerTmpBytes);
  child.threads_max = std::max(child.threads_max, kCompilerThreads);
  child.runs_programs = true;
  return child;
}

Error infra(const std::string& what) { return {ErrorCode::kUnavailable, what}; }

worker::JudgeOptions sent(const JudgeOptions& options) {
  const task::Correctness& correctness = options.correctness;
  return {.trials = correctness.trials,
          .inputs = correctness.inputs,
          .shapes = correctness.shapes,
          .require_general = correctness.require_general,
          .mode = correctness.mode,
          .precision = correctness.precision,
          .tolerance_fp32 = correctness.tolerance_fp32,
          .tolerance_half = correctness.tolerance_half,
          .cost_max = options.cost_max,
          .bytes_max = options.bytes_max,
          .tf32 = options.tf32};
}

// A task's own failure, as python/harness/judge/task_code.py reports it.
std::string task_failure(const ErrorReply& refusal) {
  const int line = refusal.exception.location.line;
  return "the task fails: " + refusal.exception.message +
         (line > 0 ? " (line " + std::to_string(line) + ")" : "");
}

// The error of a judge that rejected a request.
Error judge_error(const ErrorReply& refusal) {
  if (refusal.kind == "oom") {
    return {ErrorCode::kExhausted, "no room for the reference: " + refusal.exception.message};
  }
  if (refusal.kind == "task") return {ErrorCode::kUnsupported, task_failure(refusal)};
  if (refusal.kind == "unsupported") return {ErrorCode::kUnsupported, refusal.exception.message};
  return infra("the judge failed: " + refusal.exception.type + ": " + refusal.exception.message);
}

// True for a signal by which a process ends itself; SIGKILL may come from a machine that is short
// of memory.
bool is_own_crash(const ProcessEnd& death) {
  return death.signal == SIGSEGV || death.signal == SIGABRT || death.signal == SIGFPE ||
         death.signal == SIGBUS || death.signal == SIGILL;
}

// True for an end that a busy machine may have caused once; a second one is due to the text.
bool may_be_of_others(const CallResult& result) {
  const auto* death = std::get_if<ProcessEnd>(&result);
  return std::holds_alternative<LimitExceeded>(result) ||
         (death != nullptr && !is_own_crash(*death));
}

// The failure of a role that runs a task's source, by its response; nothing where it replied.
std::optional<Result<task::Outcome>> why_unopened(const CallResult& result) {
  const auto unsupported = [](const char* rule, std::string why) {
    return task::Outcome(task::Unsupported{{{rule, std::move(why), {}}}});
  };
  if (std::holds_alternative<Reply>(result)) return std::nullopt;
  if (const auto* refusal = std::get_if<ErrorReply>(&result)) {
    if (refusal->kind == "unsupported") {
      return unsupported("task.does_not_fit", refusal->exception.message);
    }
    if (refusal->kind == "task") return unsupported("task.fails", task_failure(*refusal));
    return judge_error(*refusal);
  }
  if (const auto* death = std::get_if<ProcessEnd>(&result);
      death != nullptr && is_own_crash(*death)) {
    return unsupported("task.fails", "the process that runs the task's code died of signal " +
                                         std::to_string(death->signal));
  }
  if (const auto* overrun = std::get_if<LimitExceeded>(&result);
      overrun != nullptr && overrun->limit != Limit::kMemory) {
    return unsupported("task.too_slow", "the task's own code exceeds the limits of the judge");
  }
  return infra("the judge died or exceeded its limits opening the task");
}

}  // namespace

Status Judge::begin(uint64_t seed, double limit_s) {
  MC_TRY(const auto begun, call(worker::JudgeBeginRequest{seed}, limit_s), "begin");
  plan_ = plan_of(begun.body.plan);
  known_ = begun.body.known;
  return ok();
}

Result<bool> Judge::offer(const std::string& shape, const std::set<int64_t>& kept, double limit_s) {
  const worker::JudgeOfferRequest request{shape, {kept.begin(), kept.end()}};
  MC_TRY(const auto offered, call(request, limit_s), "offer");
  const size_t num_planned = plan_.trials.size();
  plan_ = plan_of(offered.body.plan);
  return plan_.trials.size() > num_planned;
}

Result<Initial> Judge::init(int shape, double limit_s) {
  return call(worker::JudgeInitRequest{shape}, limit_s);
}

Result<Reply> Judge::reply_to(const std::string& request, const Fd* region, double limit_s) {
  CallResult result = session_.call(request, region, Seconds(limit_s));
  if (auto* reply = std::get_if<Reply>(&result)) return std::move(*reply);
  if (auto* refusal = std::get_if<ErrorReply>(&result)) {
    return judge_error(*refusal);
  }
  if (auto* death = std::get_if<ProcessEnd>(&result)) {
    return infra("the judge died of signal " + std::to_string(death->signal) + ", exit code " +
                 std::to_string(death->exit_code) + ": " + session_.output_tail());
  }
  const std::string late =
      "the judge exceeded its limits: the reference is too slow or too large here";
  const auto* overrun = std::get_if<LimitExceeded>(&result);
  if (overrun != nullptr && overrun->limit != Limit::kMemory) {
    return Error{ErrorCode::kUnsupported, late};
  }
  return infra(late);
}

Stage<Inspection> Executor::inspect(const std::string& source, const std::string& policy_json) {
  using Inspected = std::variant<Inspection, task::Outcome>;
  using Rules = std::map<std::string, std::vector<std::string>>;
  const worker::InspectorInspectRequest request{source,
                                                Json::parse(policy_json).value("python", Rules())};
  for (const bool is_last : {false, true}) {
    MC_TRY(Session session, zygotes_.spawn(Role::kInspector, limits_.child), "inspect");
    CallResult result = session.call(request.to_json(), nullptr, Seconds(limits_.inspect_s));
    if (auto* reply = std::get_if<Reply>(&result)) {
      MC_TRY(auto response,
             worker::parse_response<worker::InspectorInspectRequest>(std::move(*reply)),
             "inspector");
      return Inspected(inspection_of(std::move(response.body)));
    }
    if (is_cancelled()) return Error{ErrorCode::kUnavailable, "cancelled"};
    if (is_last || !may_be_of_others(result)) break;
  }
  // A text that crashes the parser cannot be judged as Python.
  return Inspected(task::Outcome(
      task::Unextractable{"syntax_error", "CPython's parser gave up on this text", {}}));
}

Result<worker::CallMemory> Executor::estimate(Session& session, const std::string& task_source,
                                              const JudgeOptions& options) {
  using Request = worker::JudgeEstimateRequest;
  CallResult result = session.call(Request{task_source, sent(options)}.to_json(), nullptr,
                                   Seconds(limits_.judge_s));
  auto* reply = std::get_if<Reply>(&result);
  if (reply == nullptr) return worker::CallMemory();  // Opening the task will show the reason.
  MC_TRY(const auto estimated, worker::parse_response<Request>(std::move(*reply)), "estimate");
  return estimated.body.call_memory;
}

Stage<std::unique_ptr<Judge>> Executor::open_judge(Session session, const std::string& task_source,
                                                   const JudgeOptions& options,
                                                   const std::string& known) {
  using Opened = std::variant<std::unique_ptr<Judge>, task::Outcome>;
  const worker::JudgeOpenRequest request{task_source, sent(options), known};
  const CallResult result = session.call(request.to_json(), nullptr, Seconds(limits_.judge_s));
  if (auto unopened = why_unopened(result)) {
    if (!*unopened) return unopened->error();
    return Opened(std::move(**unopened));
  }
  return Opened(std::make_unique<Judge>(std::move(session)));
}

Stage<Initials> Executor::initials(const std::string& task_source, const JudgeOptions& options) {
  using Found = std::variant<Initials, task::Outcome>;
  MC_TRY(Session session, zygotes_.spawn(Role::kInspector, limits_.child), "initial arguments");
  const worker::InspectorInitialsRequest request{task_source, sent(options)};
  CallResult result = session.call(request.to_json(), nullptr, Seconds(limits_.judge_s));
  if (auto unopened = why_unopened(result)) {
    if (!*unopened) return unopened->error();
    return Found(std::move(**unopened));
  }
  MC_TRY(
      auto found,
      worker::parse_response<worker::InspectorInitialsRequest>(std::get<Reply>(std::move(result))),
      "initial arguments");
  if (found.body.initials.empty()) {
    return Error{ErrorCode::kProtocol, "the inspector gave no initial arguments"};
  }
  return Found(Initials{std::move(found.body.initials), std::move(found.region)});
}

Stage<std::string> Executor::record(const std::string& source, const Initials& initials,
                                    const Described& described) {
  using Recorded = std::variant<std::string, task::Outcome>;
  MC_CHECK(!initials.trees.empty() && initials.region.is_open());
  MC_TRY(Session session, zygotes_.spawn(Role::kRecorder, limits_.child), "record");
  const worker::RecorderRecordRequest request{source, initials.trees, described};
  CallResult result = session.call(request.to_json(), &initials.region, Seconds(limits_.load_s));
  if (auto* reply = std::get_if<Reply>(&result)) return Recorded(std::move(reply->json));
  return Recorded(std::visit(Failure{limits_, "record", limits_.load_s, {}}, result));
}

Result<CandidateProcess> Executor::candidate(const Program& program) {
  ChildLimits limits = limits_.child;
  if (program.is_in_triton()) limits.imports = {"triton"};
  MC_TRY(auto device, device_process(), "candidate");
  MC_TRY(const Fd channel,
         device->open(limits_.foreign_kernels, program.described, limits_.is_recorded),
         "candidate");
  limits.device_channel = channel.get();
  MC_TRY(Session session, zygotes_.spawn(Role::kCandidate, limits), "candidate");
  return CandidateProcess{std::move(session), std::move(device)};
}

Result<std::unique_ptr<DeviceProcess>> Executor::device_process() {
  {
    const std::lock_guard lock(idle_->mutex);
    if (!idle_->devices.empty()) {
      auto device = std::move(idle_->devices.back());
      idle_->devices.pop_back();
      return device;
    }
  }
  MC_TRY(Session session, zygotes_.spawn(Role::kDevice, limits_.child), "device process");
  return std::make_unique<DeviceProcess>(std::move(session), limits_.judge_s);
}

Status Executor::probe_device() {
  MC_TRY_VOID(zygotes_.spawn(Role::kDevice, limits_.child), "device process");
  return ok();
}

Status Executor::give_back_device(std::unique_ptr<DeviceProcess> device) {
  if (device == nullptr) return ok();
  const bool is_clean = device->close();  // Notices an end that only the candidate's process met.
  if (device->failed_check()) return *device->failed_check();
  if (!is_clean) return ok();
  const std::lock_guard lock(idle_->mutex);
  idle_->devices.push_back(std::move(device));
  return ok();
}

Result<Session> Executor::judge(Acquire acquire) {
  if (warm_judges_ != nullptr && acquire == Acquire::kWait) return warm_judges_->wait();
  if (warm_judges_ != nullptr) {
    if (auto ready = warm_judges_->take()) return std::move(*ready);
  }
  return zygotes_.spawn(Role::kJudge, limits_.child);
}

// A device process does only what the candidate requests.  If a new one ends again with a new
// candidate process, the candidate is the cause.
task::Outcome ended_device(const Error& error) {
  return task::Crashed{
      "forward", task::Exception{"DeviceProcessEnded", error.message, {}, {}}, 0, 0, {}, {}};
}

Result<Measured> Executor::measure(CandidateProcess candidate, const Program& program, Judge& judge,
                                   const RunPolicy& policy, uint64_t schedule_seed,
                                   const Pause& pause) {
  MC_CHECK(candidate.device != nullptr);
  auto device = std::move(candidate.device);
  auto measured = Measurement(limits_, program, judge, policy, schedule_seed,
                              std::move(candidate.session), *device)
                      .run(pause);
  if (measured && limits_.is_recorded) measured->recording = device->recording();
  if (measured && measured->candidate) {
    measured->device = std::move(device);
    return measured;
  }
  const bool has_ended = device->has_ended();
  MC_TRY_VOID(give_back_device(std::move(device)), "measure");
  if (!measured && has_ended) {
    Measured ended;
    ended.outcome = ended_device(measured.error());
    ended.check_error = measured.error();
    return ended;
  }
  return measured;
}

Result<worker::DeviceReplayResponse> Executor::replay(const Fd& data,
                                                      const task::Correctness& correctness) {
  MC_TRY(Session session, zygotes_.spawn(Role::kDevice, limits_.child), "device process");
  return DeviceProcess(std::move(session), limits_.judge_s).replay(data, correctness);
}

Result<Tried> Executor::measure_last(const Program& program, Judge& judge, const RunPolicy& policy,
                                     uint64_t schedule_seed, double forward_s) {
  StageLimits limits = limits_;
  limits.forward_s = forward_s;
  MC_TRY(CandidateProcess candidate, this->candidate(program), "candidate");
  auto device = std::move(candidate.device);
  auto tried = Measurement(limits, program, judge, policy, schedule_seed,
                           std::move(candidate.session), *device)
                   .run_last();
  const bool has_ended = device->has_ended();
  MC_TRY_VOID(give_back_device(std::move(device)), "measure");
  if (!tried && has_ended) return Tried{ended_device(tried.error())};
  return tried;
}

Result<Session> Executor::start_compiled(Judge& judge, const CompiledOptions& options) {
  MC_TRY(const Initial init, judge.init(kMainShape, limits_.judge_s), "baseline");
  const worker::BaselineLoadRequest load{options.task_source, options.tf32};
  const worker::BaselineBuildRequest build{.shape = kMainShape,
                                           .init = init.body.init,
                                           .init_seed = init.body.init_seed,
                                           .constants = init.body.constants,
                                           .training = init.body.training,
                                           .precision = init.body.precision,
                                           .state = init.body.state,
                                           .compile = options.mode};
  MC_TRY(Session session, zygotes_.spawn(Role::kBaseline, compiling(limits_.child)), "baseline");
  MC_TRY_VOID(call_baseline(session, load.to_json(), nullptr), "baseline");
  MC_TRY_VOID(call_baseline(session, build.to_json(), &init.region), "baseline");
  return session;
}

Status Executor::call_baseline(Session& session, const std::string& request,
                               const Fd* region) const {
  const CallResult result = session.call(request, region, Seconds(limits_.judge_s));
  if (const auto* refusal = std::get_if<ErrorReply>(&result)) {
    return infra("the baseline failed: " + refusal->exception.message);
  }
  if (!std::holds_alternative<Reply>(result)) {
    return infra("the baseline died: " + session.output_tail());
  }
  return ok();
}

void Executor::end_idle() {
  std::vector<std::unique_ptr<DeviceProcess>> devices;  // Destroyed after the lock is released.
  const std::lock_guard lock(idle_->mutex);
  devices.swap(idle_->devices);
}

bool changes_settings(std::string_view task_source) {
  constexpr std::array<std::string_view, 3> kSettings = {"torch.backends", "torch.set_",
                                                         "torch.use_deterministic"};
  return std::ranges::any_of(kSettings, [&](std::string_view name) {
    return task_source.find(name) != std::string_view::npos;
  });
}

Stage<CandidateProcess> Executor::start_candidate(const Program& program, Judge& judge,
                                                  const RunPolicy& policy, uint64_t schedule_seed) {
  using Started = std::variant<CandidateProcess, task::Outcome>;
  MC_TRY(CandidateProcess candidate, this->candidate(program), "candidate");
  MC_TRY(auto started,
         Measurement(limits_, program, judge, policy, schedule_seed, std::move(candidate.session),
                     *candidate.device)
             .start(),
         "candidate");
  if (auto* outcome = std::get_if<task::Outcome>(&started)) {
    MC_TRY_VOID(give_back_device(std::move(candidate.device)), "candidate");
    return Started(std::move(*outcome));
  }
  return Started(
      CandidateProcess{std::move(std::get<Session>(started)), std::move(candidate.device)});
}

}  // namespace mc::execute
