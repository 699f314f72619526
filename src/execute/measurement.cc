// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  The judge makes inputs and keeps the expected outputs; the candidate
// process gets the inputs and returns data; this class carries messages between the two, and Trials
// determines the outcome.  Reports of the candidate process about itself can only count against it:
// an ATen call makes it illegal, a finding makes its trial fail, and its outputs count only after
// the judge has compared them.
//
// Trials at the main shape come first.  Where the plan does not demand general kernels, only these
// count: any failure at another shape, except an illegal one, only fails the trials there.
#include "execute/measurement.h"

#include <algorithm>
#include <chrono>

#include "core/check.h"
#include "execute/failure.h"

namespace mc::execute {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr size_t kDetailBytesMax = 300;

constexpr int64_t kConfigurationsMax = 64;  // The bound on configurations of an autotuned kernel.
constexpr double kConfigurations_s = 30;    // Wall-clock time for all but the first.

}  // namespace

Measurement::Measurement(const StageLimits& limits, const Program& program, Judge& judge,
                         const RunPolicy& policy, uint64_t schedule_seed, Session session,
                         DeviceProcess& device)
    : limits_(limits),
      program_(program),
      judge_(judge),
      policy_(policy),
      schedule_seed_(schedule_seed),
      session_(std::move(session)),
      device_(device),
      trials_(judge.plan(), policy, limits, program) {
  session_.charge(program.time);
}

Result<Measured> Measurement::run(const Pause& pause) {
  MC_TRY(EarlyOutcome loaded, load(), "load");
  if (loaded) return finish(std::move(*loaded));
  // All models are built first: from the first trial on, operators that only __init__ may use are
  // forbidden.
  for (const TrialPlan& plan : judge_.plan().trials) {
    if (shapes_built_.contains(plan.shape)) continue;
    MC_TRY(EarlyOutcome outcome, build(plan.shape), "build");
    if (outcome) return finish(std::move(*outcome));
  }
  for (const TrialPlan& plan : judge_.plan().trials) {
    if (const task::Outcome* why = cannot_run(plan)) {
      trials_.fail(plan, why);
      continue;
    }
    if (trials_.is_pointless(plan)) {
      trials_.fail(plan, nullptr);
      continue;
    }
    MC_TRY(EarlyOutcome outcome, run_trial(plan, pause), "trial " + std::to_string(plan.index));
    if (!outcome) continue;
    if (trials_.counts(plan) || std::holds_alternative<task::Illegal>(*outcome) || check_error_) {
      return finish(std::move(*outcome));
    }
    trials_.fail(plan, &*outcome);
    spoilt_by_ = std::move(outcome);
  }
  MC_TRY(EarlyOutcome outcome, run_configurations(pause), "configurations");
  return finish(outcome ? std::move(*outcome) : trials_.outcome());
}

// Tests further configurations, because an autotuner chooses another one on another device, or at
// another time.
Result<EarlyOutcome> Measurement::run_configurations(const Pause& pause) {
  const auto start = std::chrono::steady_clock::now();
  for (const TrialPlan& plan : plans_of_configurations()) {
    for (configuration_ = 1; configuration_ < num_configurations_; ++configuration_) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      if (trials_.has_failed() || spent_up(spent.count())) return EarlyOutcome();
      trials_.repeat(configuration_, num_configurations_);
      MC_TRY(EarlyOutcome outcome, run_trial(plan, pause), "trial " + std::to_string(plan.index));
      if (outcome) return outcome;
    }
  }
  return EarlyOutcome();
}

bool Measurement::spent_up(double spent_s) {
  are_configurations_left_ = spent_s > kConfigurations_s;
  return are_configurations_left_;
}

// The first trial, and the first trial at another shape that counts.
std::vector<TrialPlan> Measurement::plans_of_configurations() const {
  std::vector<TrialPlan> plans;
  if (num_configurations_ <= 1 || spoilt_by_) return plans;
  for (const TrialPlan& plan : judge_.plan().trials) {
    const bool is_new = plans.empty() || (plans.size() == 1 && plan.shape != plans[0].shape);
    if (is_new && trials_.counts(plan)) plans.push_back(plan);
  }
  return plans;
}

Result<Tried> Measurement::run_last() {
  MC_TRY(EarlyOutcome loaded, load(), "load");
  if (loaded) return Tried{std::move(*loaded)};
  const int shape = judge_.plan().trials.back().shape;
  MC_TRY(EarlyOutcome built, build(shape), "build");
  if (built) return Tried{std::move(*built)};
  double kernel_s_max = 0;
  for (const TrialPlan& plan : judge_.plan().trials) {
    if (plan.shape != shape) continue;
    if (const task::Outcome* why = cannot_run(plan)) return Tried{*why};
    MC_TRY(EarlyOutcome ran, run_trial(plan, [](Session&) {}),
           "trial " + std::to_string(plan.index));
    if (ran) return Tried{std::move(*ran)};
    if (!trials_.all().back().passed) return Tried{task::Wrong{0, false, trials_.all()}};
    kernel_s_max = std::max(kernel_s_max, kernel_s_);
  }
  return Tried{task::Passed{trials_.all(), std::nullopt}, kernel_s_max};
}

const task::Outcome* Measurement::cannot_run(const TrialPlan& plan) const {
  if (spoilt_by_) return &*spoilt_by_;
  const auto refused = shapes_refused_.find(plan.shape);
  return refused == shapes_refused_.end() ? nullptr : &refused->second;
}

Stage<Session> Measurement::start() {
  using Started = std::variant<Session, task::Outcome>;
  MC_TRY(EarlyOutcome loaded, load(), "load");
  if (loaded) return Started(std::move(*loaded));
  MC_TRY(EarlyOutcome outcome, build(0), "build");
  if (outcome) return Started(std::move(*outcome));
  return Started(std::move(session_));
}

Result<EarlyOutcome> Measurement::load() {
  std::vector<std::filesystem::path> paths;
  for (const Library& library : program_.libraries) paths.push_back(library.path);
  MC_TRY(paths, session_.mount_artifacts(paths), "candidate");
  worker::CandidateLoadRequest request{.source = program_.source, .artifacts = {}, .policy = {}};
  for (size_t i = 0; i < paths.size(); ++i) {
    const Library& library = program_.libraries[i];
    request.artifacts[library.key] = {paths[i].string(), library.module};
  }
  const std::vector<std::string> operators(policy_.operators.begin(), policy_.operators.end());
  std::vector<std::string> init = operators;
  init.insert(init.end(), policy_.init_operators.begin(), policy_.init_operators.end());
  request.policy = {policy_.name, operators, operators, std::move(init)};
  request.schedule_seed = schedule_seed_;
  request.described = program_.described;
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    files[paths[i].string()] = program_.libraries[i].path.string();
  }
  MC_TRY_VOID(device_.allow(files, schedule_seed_), "candidate");
  CallResult result = call(request, nullptr, limits_.load_s);
  if (auto* reply = std::get_if<Reply>(&result)) {
    const auto loaded = worker::parse_response<worker::CandidateLoadRequest>(std::move(*reply));
    if (loaded) return EarlyOutcome();
    return EarlyOutcome(Failure{limits_, "load", 0, {}}(MalformedReply{loaded.error().message}));
  }
  return EarlyOutcome(std::visit(Failure{limits_, "load", limits_.load_s, new_findings()}, result));
}

Result<EarlyOutcome> Measurement::build(int shape) {
  auto asked = call_judge(worker::JudgeInitRequest{shape});
  if (is_judge_crowded_out_) return EarlyOutcome(out_of_memory("init"));
  MC_TRY(const Initial init, std::move(asked), "init");
  MC_TRY(CallResult result, request_build(shape, init), "build");
  MC_CHECK(shapes_built_.insert(shape).second);
  if (auto* reply = std::get_if<Reply>(&result)) {
    auto built = worker::parse_response<worker::CandidateBuildThereRequest>(std::move(*reply));
    if (!built)
      return EarlyOutcome(Failure{limits_, "init", 0, {}}(MalformedReply{built.error().message}));
    if (shape == kMainShape) state_ = state_of(std::move(built->body));
    return EarlyOutcome();
  }
  task::Outcome failure =
      std::visit(Failure{limits_, "init", limits_.load_s, new_findings()}, result);
  if (shape == kMainShape || judge_.plan().needs_general ||
      !std::holds_alternative<ErrorReply>(result))
    return EarlyOutcome(std::move(failure));
  shapes_refused_.emplace(shape, std::move(failure));
  return EarlyOutcome();
}

// Other evaluations may get exclusive use of the device before each of the three steps, which take
// up to half a second for a large task.
Result<EarlyOutcome> Measurement::run_trial(const TrialPlan& plan, const Pause& pause) {
  MC_CHECK(shapes_built_.contains(plan.shape));
  pause(session_);
  auto asked = call_judge(worker::JudgeTrialRequest{plan.index});
  if (is_judge_crowded_out_) return EarlyOutcome(out_of_memory("forward"));
  MC_TRY(const auto given, std::move(asked), "inputs");
  pause(session_);
  MC_TRY(auto ended, request_run(plan, given), "forward");
  Trials::Call call = trials_.begin(plan, given.body, fresh_report());
  kernel_s_ = call.record ? static_cast<double>(call.record->kernel_us) / 1e6 : 0;
  const auto* failure = std::get_if<CallResult>(&ended);
  const bool is_alive = failure == nullptr || std::holds_alternative<ErrorReply>(*failure);
  if (is_alive) {
    MC_TRY(EarlyOutcome forbidden, forbidden_there(), "forward");
    if (forbidden) return forbidden;
  }
  if (failure != nullptr) {
    EarlyOutcome decided = trials_.fail(call, *failure);
    has_thrown_ = has_thrown_ || !decided;
    if (!decided && !is_alive) spoilt_by_ = call.lack();
    return decided;
  }
  auto& [ran, region] = std::get<Ran>(ended);
  const RunResponse run = bounded(std::move(ran));
  note_configurations(run);
  if (EarlyOutcome decided = trials_.admit(call, run); decided || call.lacking) return decided;
  pause(session_);
  auto checked = check(run, region, call);
  if (!checked) return EarlyOutcome(uncheckable(checked.error(), std::move(call)));
  if (EarlyOutcome late = trials_.check_idle(fresh_report())) return late;
  return trials_.add(std::move(call), run, std::move(checked->body));
}

void Measurement::note_configurations(const RunResponse& run) {
  if (!run.triton) return;
  if (run.triton->compile_s > 0) compile_s_ += run.triton->compile_s;
  num_configurations_ =
      std::clamp(run.triton->configurations, num_configurations_, kConfigurationsMax);
}

Result<CallResult> Measurement::request_build(int shape, const Initial& init) {
  std::vector<worker::Tree> trees = {init.body.init};
  for (const worker::NamedTree& entry : init.body.state) trees.push_back(entry.tree);
  MC_TRY(const int64_t address, device_.put(trees, init.region), "state");
  return call(worker::CandidateBuildThereRequest{.shape = shape,
                                                 .init = init.body.init,
                                                 .init_seed = init.body.init_seed,
                                                 .constants = init.body.constants,
                                                 .training = init.body.training,
                                                 .precision = init.body.precision,
                                                 .state = init.body.state,
                                                 .init_operators = init.body.init_operators,
                                                 .address = address},
              nullptr, limits_.load_s);
}

Result<std::variant<Measurement::Ran, CallResult>> Measurement::request_run(
    const TrialPlan& plan, const worker::Response<worker::JudgeTrialRequest>& given) {
  using Ended = std::variant<Ran, CallResult>;
  MC_TRY(const auto before, device_.used(), "before the call");
  if (!bytes_to_host_before_) bytes_to_host_before_ = before.bytes_to_host;
  ++calls_there_;
  const auto put = device_.begin_call(given.body.inputs, given.region);
  // The device was clean when the candidate got it, so the fault is the candidate's.
  if (!put && !trials_.all().empty()) {
    const task::Exception fault{"CudaError", put.error().message, {}, {}};
    return Ended(ErrorReply{.kind = "exception", .stage = "forward", .exception = fault});
  }
  MC_TRY(const int64_t address, put, "inputs");
  // Triton kernels are compiled when they are called.
  const double compile_s = program_.is_in_triton() ? limits_.load_s : 0;
  CallResult result =
      call(worker::CandidateRunThereRequest{plan.shape, given.body.inputs, given.body.written,
                                            configuration_, address},
           nullptr, limits_.forward_s + compile_s);
  const bool is_alive =
      !std::holds_alternative<ProcessEnd>(result) && !std::holds_alternative<LimitExceeded>(result);
  Ended ended = std::move(result);
  if (auto* reply = std::get_if<Reply>(&std::get<CallResult>(ended))) {
    MC_TRY(const auto after, device_.used(), "after the call");
    MC_TRY(ended, take_outputs(std::move(*reply), after.launches_own - before.launches_own),
           "outputs");
  }
  if (is_alive) {
    MC_TRY_VOID(device_.release(address), "inputs");
  }
  return ended;
}

// The candidate process's reply with its outputs copied from the device to memory that is shared
// with the judge (a region, docs/architecture.md).
Result<std::variant<Measurement::Ran, CallResult>> Measurement::take_outputs(Reply result,
                                                                             int64_t launches) {
  using Ended = std::variant<Ran, CallResult>;
  auto ran = worker::parse_response<worker::CandidateRunThereRequest>(std::move(result));
  if (!ran) return Ended(MalformedReply{ran.error().message});
  CallResult taken = device_.take(ran->body.outputs, ran->body.buffers);
  auto* reply = std::get_if<Reply>(&taken);
  if (reply == nullptr) {
    if (auto* refusal = std::get_if<ErrorReply>(&taken)) return Ended(std::move(*refusal));
    return Error{ErrorCode::kUnavailable, "the device process ended as it copied outputs"};
  }
  MC_TRY(auto copied, worker::parse_response<worker::DeviceTakeRequest>(std::move(*reply)),
         "outputs");
  RunResponse run{.aten = std::move(ran->body.aten),
                  .moved_percent = ran->body.moved_percent + copied.body.moved_percent,
                  .launches = launches,
                  .sticky = std::move(ran->body.sticky),
                  .outputs = std::move(copied.body.outputs),
                  .buffers = std::move(copied.body.buffers),
                  .triton = std::move(ran->body.triton)};
  return Ended(Ran{std::move(run), std::move(copied.region)});
}

// Illegal where the device process saw uses that the candidate's policy forbids.  Bytes count from
// the first inputs on, in calls and between them.
Result<EarlyOutcome> Measurement::forbidden_there() {
  if (trials_.may_use_all()) return EarlyOutcome();
  MC_TRY(const auto used, device_.used(), "after the call");
  return forbidden_by(used, bytes_to_host_before_.value_or(0), calls_there_);
}

Result<Measurement::Checked> Measurement::check(const RunResponse& run, const Fd& region,
                                                const Trials::Call& call) {
  worker::JudgeCheckRequest request{call.plan.index, run.outputs, run.buffers};
  return judge_.call(request, limits_.judge_s, &region);
}

task::Outcome Measurement::uncheckable(Error error, Trials::Call call) {
  // A judge on the CPU does not share memory with the candidate, and a new judge has all of it.
  if (limits_.device_reports) error.code = ErrorCode::kUnavailable;
  check_error_ = with_context(error, "check");
  return trials_.reject(std::move(call), error.message.substr(0, kDetailBytesMax));
}

template <typename Request>
CallResult Measurement::call(const Request& request, const Fd* region, double limit_s) {
  MC_CHECK((region != nullptr) == Request::kHasRegion);
  return session_.call(request.to_json(), region, Seconds(limit_s));
}

// Repeats a request that lacks device memory after the candidate process has ended.  If it then
// succeeds, the candidate process had taken the memory.
template <typename Request>
Result<worker::Response<Request>> Measurement::call_judge(const Request& request) {
  auto response = judge_.call(request, limits_.judge_s);
  if (response || response.error().code != ErrorCode::kExhausted) return response;
  session_.end();
  is_judge_crowded_out_ = judge_.call(request, limits_.judge_s).has_value();
  return response;
}

task::Outcome Measurement::out_of_memory(const char* stage) const {
  return task::OutOfMemory{stage, limits_.child.memory_bytes};
}

std::string_view Measurement::fresh_report() {
  // An error means that the device process ended, which the next request to it shows.
  if (limits_.device_reports) static_cast<void>(device_.used());
  const std::string_view report = device_.report();
  const std::string_view fresh = report.substr(std::min(report_read_, report.size()));
  report_read_ = report.size();
  return fresh;
}

std::vector<task::KernelFinding> Measurement::new_findings() {
  return decode_findings(fresh_report(), program_.locate);
}

// True for a crash of a candidate that requested a feature that the device process lacks.  Wrong
// values are not excused by this: otherwise a candidate could avoid every score by such a request.
bool Measurement::lacks_there(const task::Outcome& outcome, std::string& what) {
  if (!std::holds_alternative<task::Crashed>(outcome)) return false;
  const auto used = device_.used();
  if (used) what = used->unsupported;
  return !what.empty();
}

Measured Measurement::finish(task::Outcome outcome) {
  if (std::string what; lacks_there(outcome, what)) {
    outcome = task::Unsupported{{{"device.unsupported", "the device process has no " + what, {}}}};
  }
  Measured measured{trials_.with_trials(std::move(outcome)),
                    trials_.aten_ops(),
                    session_.memory_peak_bytes(),
                    session_.output_tail(),
                    state_,
                    std::nullopt,
                    nullptr,
                    check_error_,
                    trials_.has_failed(),
                    are_configurations_left_,
                    compile_s_};
  // A kernel's fault also appears as an exception, and a fault that stays on the device makes later
  // calls fail.
  const bool is_clean = !spoilt_by_ && !has_thrown_;
  if (std::holds_alternative<task::Passed>(measured.outcome) && is_clean) {
    measured.candidate = std::move(session_);
  }
  return measured;
}

}  // namespace mc::execute
