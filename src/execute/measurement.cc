// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  The judge makes inputs and keeps what it expects; the candidate process
// gets the inputs and returns data; this class carries messages between the two and draws the
// conclusion. What the candidate process says of itself can only hurt it: an ATen call that it
// reports makes it illegal, a finding fails its trial, and its outputs count only after the judge
// compared them.
//
// Trials at the main shape come first.  Where the plan does not ask for general kernels, only those
// count: whatever goes wrong at another shape, but for what is illegal, fails the trials there.
#include "execute/measurement.h"

#include <algorithm>

#include "core/check.h"
#include "core/demangle.h"
#include "execute/failure.h"
#include "task/text.h"

namespace mc::execute {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr size_t kDetailBytesMax = 300;

// The shape that the task asks for, as far as it fits; the others are variants.
constexpr int kMainShape = 0;

constexpr double kWallFactor = 4;

// Trials of values that a task's own inputs do not hold (harness/judge/specials.py).
bool is_special(const TrialPlan& plan) {
  return plan.distribution == "nan" || plan.distribution == "nonfinite";
}

bool is_main(const TrialPlan& plan) { return plan.shape == kMainShape && !is_special(plan); }

// How a call ended that only fails its trial.
task::OutputCheck check_of(const task::Outcome& outcome) {
  task::OutputCheck check;
  check.path = "output";
  check.problem = task::outcome_name(outcome);
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  if (crashed == nullptr) return check;
  check.problem = "exception";
  if (!crashed->exception) {
    check.detail = "the process ended by signal " + std::to_string(crashed->signal) +
                   ", exit code " + std::to_string(crashed->exit_code);
    return check;
  }
  const task::Exception& exception = *crashed->exception;
  check.detail = exception.type;
  if (!exception.message.empty()) check.detail += ": " + exception.message;
  if (const std::string where = task::place_name(exception.location); !where.empty()) {
    check.detail += " (" + where + ")";
  }
  return check;
}

std::vector<task::KernelFinding> findings_of(const task::Outcome& outcome) {
  if (const auto* crashed = std::get_if<task::Crashed>(&outcome)) return crashed->findings;
  if (const auto* late = std::get_if<task::TimedOut>(&outcome)) return late->findings;
  return {};
}

}  // namespace

Measurement::Measurement(const StageLimits& limits, const Program& program, Judge& judge,
                         const RunPolicy& policy, uint64_t schedule_seed, Session session,
                         DeviceProcess* device)
    : limits_(limits),
      program_(program),
      judge_(judge),
      policy_(policy),
      schedule_seed_(schedule_seed),
      session_(std::move(session)),
      device_(device) {}

Result<Measured> Measurement::run(const Pause& pause) {
  MC_TRY(EarlyOutcome loaded, load(), "load");
  if (loaded) return finish(std::move(*loaded));
  // All models first: with the first trial, what only __init__ may use is gone.
  for (const TrialPlan& plan : judge_.plan().trials) {
    if (shapes_built_.contains(plan.shape)) continue;
    MC_TRY(EarlyOutcome outcome, build(plan.shape), "build");
    if (outcome) return finish(std::move(*outcome));
  }
  for (const TrialPlan& plan : judge_.plan().trials) {
    if (const task::Outcome* why = cannot_run(plan)) {
      fail(plan, *why);
      continue;
    }
    // Such a trial asks little, and must not lift the q of a candidate that fails all others.
    if (is_special(plan) && std::ranges::none_of(trials_, &task::Trial::passed)) {
      trials_.push_back(trial_of(plan));
      continue;
    }
    pause(session_);
    MC_TRY(EarlyOutcome outcome, run_trial(plan), "trial " + std::to_string(plan.index));
    if (!outcome) continue;
    if (counts(plan) || std::holds_alternative<task::Illegal>(*outcome) || check_error_) {
      return finish(std::move(*outcome));
    }
    fail(plan, *outcome);
    spoilt_by_ = std::move(outcome);
  }
  return finish(conclude());
}

Result<Tried> Measurement::run_last() {
  MC_TRY(EarlyOutcome loaded, load(), "load");
  if (loaded) return Tried{std::move(*loaded)};
  const TrialPlan& plan = judge_.plan().trials.back();
  MC_TRY(EarlyOutcome built, build(plan.shape), "build");
  if (built) return Tried{std::move(*built)};
  if (const task::Outcome* why = cannot_run(plan)) return Tried{*why};
  MC_TRY(EarlyOutcome ran, run_trial(plan), "trial " + std::to_string(plan.index));
  if (ran) return Tried{std::move(*ran)};
  if (!trials_.back().passed) return Tried{task::Wrong{0, false, trials_}};
  return Tried{task::Passed{trials_, std::nullopt}, forward_work_s_};
}

bool Measurement::counts(const TrialPlan& plan) const {
  return is_main(plan) || judge_.plan().needs_general;
}

const task::Outcome* Measurement::cannot_run(const TrialPlan& plan) const {
  if (spoilt_by_) return &*spoilt_by_;
  const auto refused = shapes_refused_.find(plan.shape);
  return refused == shapes_refused_.end() ? nullptr : &refused->second;
}

task::Trial Measurement::trial_of(const TrialPlan& plan) const {
  const ShapePlan& shape = judge_.plan().shapes.at(static_cast<size_t>(plan.shape));
  return {plan.index, shape.label, plan.distribution, shape.constants, "", false, {}, {}, ""};
}

void Measurement::fail(const TrialPlan& plan, const task::Outcome& outcome) {
  task::Trial trial = trial_of(plan);
  trial.checks.push_back(check_of(outcome));
  trial.findings = findings_of(outcome);
  trials_.push_back(std::move(trial));
}

Stage<Session> Measurement::start() {
  using Started = std::variant<Session, task::Outcome>;
  MC_TRY(EarlyOutcome loaded, load(), "load");
  if (loaded) return Started(std::move(*loaded));
  MC_TRY(EarlyOutcome outcome, build(0), "build");
  if (outcome) return Started(std::move(*outcome));
  return Started(std::move(session_));
}

Result<Measurement::EarlyOutcome> Measurement::load() {
  std::vector<std::filesystem::path> paths;
  for (const Library& library : program_.libraries) paths.push_back(library.path);
  MC_TRY(paths, session_.show(paths), "candidate");
  worker::CandidateLoadQuestion question{.source = program_.source, .artifacts = {}, .policy = {}};
  for (size_t i = 0; i < paths.size(); ++i) {
    const Library& library = program_.libraries[i];
    question.artifacts[library.key] = {paths[i].string(), library.module};
  }
  const std::vector<std::string> operators(policy_.operators.begin(), policy_.operators.end());
  question.policy = {policy_.name, operators, operators};
  question.schedule_seed = schedule_seed_;
  if (device_ != nullptr) {
    std::map<std::string, std::string> files;
    for (size_t i = 0; i < paths.size(); ++i) {
      files[paths[i].string()] = program_.libraries[i].path.string();
    }
    MC_TRY_VOID(device_->allow(files), "candidate");
  }
  Answer answer = ask(question, nullptr, limits_.load_s);
  if (auto* reply = std::get_if<Reply>(&answer)) {
    const auto loaded = worker::parse_response<worker::CandidateLoadQuestion>(std::move(*reply));
    if (loaded) return EarlyOutcome();
    return EarlyOutcome(Failure{limits_, "load", 0, {}}(MalformedReply{loaded.error().message}));
  }
  return EarlyOutcome(std::visit(Failure{limits_, "load", limits_.load_s, new_findings()}, answer));
}

Result<Measurement::EarlyOutcome> Measurement::build(int shape) {
  auto asked = ask_judge(worker::JudgeInitQuestion{shape});
  if (is_judge_crowded_out_) return EarlyOutcome(out_of_memory("init"));
  MC_TRY(const Initial init, std::move(asked), "init");
  MC_TRY(Answer answer, ask_to_build(shape, init), "build");
  shapes_built_.insert(shape);
  if (auto* reply = std::get_if<Reply>(&answer)) {
    auto built = worker::parse_response<worker::CandidateBuildQuestion>(std::move(*reply));
    if (!built)
      return EarlyOutcome(Failure{limits_, "init", 0, {}}(MalformedReply{built.error().message}));
    if (shape == kMainShape) state_ = state_of(std::move(built->body));
    return EarlyOutcome();
  }
  task::Outcome failure =
      std::visit(Failure{limits_, "init", limits_.load_s, new_findings()}, answer);
  if (shape == kMainShape || judge_.plan().needs_general ||
      !std::holds_alternative<ErrorReply>(answer))
    return EarlyOutcome(std::move(failure));
  shapes_refused_.emplace(shape, std::move(failure));
  return EarlyOutcome();
}

Result<Measurement::EarlyOutcome> Measurement::run_trial(const TrialPlan& plan) {
  task::Trial trial = trial_of(plan);
  auto asked = ask_judge(worker::JudgeTrialQuestion{plan.index});
  if (is_judge_crowded_out_) return EarlyOutcome(out_of_memory("forward"));
  MC_TRY(const auto given, std::move(asked), "inputs");
  trial.inputs_digest = given.body.digest;
  MC_TRY(Answer answer, ask_to_run(plan, given), "forward");
  forward_work_s_ = program_.is_emulated ? session_.work().count() : 0;
  trial.findings = new_findings();
  if (std::holds_alternative<Reply>(answer) || std::holds_alternative<ErrorReply>(answer)) {
    MC_TRY(EarlyOutcome forbidden, forbidden_there(), "forward");
    if (forbidden) return forbidden;
  }
  if (EarlyOutcome lacking = unsupported(trial.findings)) return lacking;

  auto* outputs = std::get_if<Reply>(&answer);
  if (outputs == nullptr) {
    const bool alive = std::holds_alternative<ErrorReply>(answer);
    task::Outcome failure =
        std::visit(Failure{limits_, "forward", limits_.forward_s, trial.findings}, answer);
    return alive ? refused(failure, plan) : EarlyOutcome(std::move(failure));
  }
  auto ran = worker::parse_response<worker::CandidateRunQuestion>(std::move(*outputs));
  if (!ran)
    return EarlyOutcome(Failure{limits_, "forward", 0, {}}(MalformedReply{ran.error().message}));
  const RunAnswer run = bounded(std::move(ran->body));
  if (EarlyOutcome illegal = note_aten(run.aten)) return illegal;
  if (EarlyOutcome fault = fatal_fault(run.sticky, trial.findings)) return fault;
  if (EarlyOutcome illegal = note_record(trial.findings)) return illegal;
  auto checked = check(run, ran->region, plan.index);
  if (!checked) return EarlyOutcome(uncheckable(checked.error(), std::move(trial)));
  take_check(std::move(checked->body), trial);
  if (trial.passed) {  // Wrong values say more of a candidate than that no kernel made them.
    if (EarlyOutcome illegal = given.body.returns_inputs ? std::nullopt : lacks_launch(run)) {
      return illegal;
    }
    if (EarlyOutcome illegal = host_made()) return illegal;
    if (EarlyOutcome illegal = given.body.returns_inputs ? std::nullopt : constant_answer()) {
      return illegal;
    }
  }
  trial.passed = trial.passed && trial.findings.empty() && trial.inputs_mutated.empty();
  trials_.push_back(std::move(trial));
  return EarlyOutcome();
}

Result<Answer> Measurement::ask_to_build(int shape, const Initial& init) {
  const worker::CandidateBuildQuestion question = build_question(shape, init);
  if (device_ == nullptr) return ask(question, &init.region, limits_.load_s);
  std::vector<worker::Tree> trees = {question.init};
  for (const worker::NamedTree& entry : question.state) trees.push_back(entry.tree);
  MC_TRY(const int64_t address, device_->put(trees, init.region), "state");
  return ask(worker::CandidateBuildThereQuestion{.shape = question.shape,
                                                 .init = question.init,
                                                 .init_seed = question.init_seed,
                                                 .constants = question.constants,
                                                 .training = question.training,
                                                 .precision = question.precision,
                                                 .state = question.state,
                                                 .address = address},
             nullptr, limits_.load_s);
}

Result<Answer> Measurement::ask_to_run(const TrialPlan& plan,
                                       const worker::Response<worker::JudgeTrialQuestion>& given) {
  if (device_ == nullptr) {
    return ask(worker::CandidateRunQuestion{plan.shape, given.body.inputs, given.body.written},
               &given.region, limits_.forward_s);
  }
  MC_TRY(const auto before, device_->used(), "before the call");
  if (!bytes_to_host_before_) bytes_to_host_before_ = before.bytes_to_host;
  ++calls_there_;
  const auto put = device_->put({given.body.inputs}, given.region);
  // The device was clean when the candidate got it.
  if (!put && !trials_.empty()) {
    const task::Exception fault{"CudaError", put.error().message, {}, {}};
    return Answer(ErrorReply{.kind = "exception", .stage = "forward", .exception = fault});
  }
  MC_TRY(const int64_t address, put, "inputs");
  Answer answer = ask(
      worker::CandidateRunThereQuestion{plan.shape, given.body.inputs, given.body.written, address},
      nullptr, limits_.forward_s);
  if (std::holds_alternative<Reply>(answer)) {
    MC_TRY(const auto after, device_->used(), "after the call");
    launches_own_ = after.launches_own - before.launches_own;
    MC_TRY(answer, take_outputs(std::move(answer)), "outputs");
  }
  if (!std::holds_alternative<ProcessEnd>(answer) &&
      !std::holds_alternative<LimitExceeded>(answer)) {
    MC_TRY_VOID(device_->release(address), "inputs");
  }
  return answer;
}

// The answer as a candidate process with a device would have given it: with its outputs in a
// region.
Result<Answer> Measurement::take_outputs(Answer answer) {
  auto ran =
      worker::parse_response<worker::CandidateRunThereQuestion>(std::get<Reply>(std::move(answer)));
  if (!ran) return Answer(MalformedReply{ran.error().message});
  Answer taken = device_->take(ran->body.outputs, ran->body.buffers);
  auto* reply = std::get_if<Reply>(&taken);
  if (reply == nullptr) {
    if (auto* refusal = std::get_if<ErrorReply>(&taken)) return Answer(std::move(*refusal));
    return Error{ErrorCode::kUnavailable, "the device process ended as it copied outputs"};
  }
  MC_TRY(auto copied, worker::parse_response<worker::DeviceTakeQuestion>(std::move(*reply)),
         "outputs");
  worker::CandidateRunAnswer said{.aten = std::move(ran->body.aten),
                                  .launches = launches_own_,
                                  .sticky = std::move(ran->body.sticky),
                                  .outputs = std::move(copied.body.outputs),
                                  .buffers = std::move(copied.body.buffers)};
  return Answer(Reply{said.to_json(), std::move(copied.region)});
}

// The things seen by the device process that the candidate's policy forbids.  Bytes count from the
// time when there were inputs, in calls and between them.
Result<Measurement::EarlyOutcome> Measurement::forbidden_there() {
  if (device_ == nullptr || may_use_all()) return EarlyOutcome();
  MC_TRY(const auto used, device_->used(), "after the call");
  return forbidden_by(used, bytes_to_host_before_.value_or(0), calls_there_);
}

// An exception.  At the main shape it decides; at another one it only fails the trial, since a
// candidate may refuse sizes that it was not asked for.
Measurement::EarlyOutcome Measurement::refused(const task::Outcome& failure,
                                               const TrialPlan& plan) {
  const auto* crashed = std::get_if<task::Crashed>(&failure);
  if (crashed == nullptr || is_main(plan) || !crashed->exception ||
      has_fatal_one(crashed->findings)) {
    return failure;
  }
  fail(plan, failure);
  has_thrown_ = true;
  // A call that threw has a record too, unless it threw before it began.
  const auto num_reported = static_cast<int64_t>(decode_calls(session_.report()).size());
  if (num_reported == num_calls_ + 1) num_calls_ = num_reported;
  return std::nullopt;
}

// The parts of an allowed operator are allowed too, so it does not matter who called.
Measurement::EarlyOutcome Measurement::note_aten(const std::map<std::string, int64_t>& calls) {
  task::Illegal illegal{"run", {}};
  for (const auto& [name, count] : calls) {
    aten_ops_[name] += count;
    if (may_run(name)) continue;
    illegal.findings.push_back({"run.aten",
                                "forward called " + name + " (" + std::to_string(count) +
                                    (count == 1 ? " time" : " times") + "), which the policy " +
                                    policy_.name + " does not allow",
                                {}});
  }
  if (illegal.findings.empty()) return std::nullopt;
  return illegal;
}

bool Measurement::may_run(std::string_view operation) const {
  constexpr std::string_view kAten = "aten::";
  if (policy_.operators.contains("*")) return true;
  return operation.starts_with(kAten) && policy_.operators.contains(operation.substr(kAten.size()));
}

Measurement::EarlyOutcome Measurement::lacks_launch(const RunAnswer& run) const {
  const int64_t launches = call_ ? call_->launches : run.launches.value_or(0);
  if (launches >= policy_.own_launches_min) return std::nullopt;
  return task::Illegal{
      "run", {{"run.own_launch", "forward launched no kernel of the candidate's own", {}}}};
}

// The features that were reached and cannot be emulated.
Measurement::EarlyOutcome Measurement::unsupported(
    const std::vector<task::KernelFinding>& findings) {
  task::Unsupported lacking = unsupported_in(findings);
  if (lacking.constructs.empty()) return std::nullopt;
  return lacking;
}

Measurement::EarlyOutcome Measurement::fatal_fault(
    const std::string& sticky, const std::vector<task::KernelFinding>& findings) {
  if (sticky.empty()) return std::nullopt;
  const task::Exception fault{"CudaError", sticky.substr(0, 400), {}, {}};
  return task::Crashed{"forward", fault, 0, 0, findings, trials_};
}

// The emulator's report of the call must be there, once: otherwise its checks were not in
// force.
Measurement::EarlyOutcome Measurement::note_record(std::vector<task::KernelFinding>& findings) {
  if (!program_.is_emulated) return std::nullopt;
  if (may_use_all())
    std::erase_if(findings, [](const auto& f) { return f.kind == "host_compute"; });
  const auto illegal = [](const char* rule, std::string message) {
    return task::Illegal{"run", {{rule, std::move(message), {}}}};
  };
  for (const task::KernelFinding& finding : findings) {
    if (finding.kind == "forged_report") {
      return illegal("run.forged_report", "the candidate wrote to the emulator's report");
    }
    if (finding.kind == "host_compute") return illegal("run.host_compute", finding.detail);
  }
  const std::vector<CallRecord> calls = decode_calls(session_.report());
  ++num_calls_;
  if (static_cast<int64_t>(calls.size()) != num_calls_ || calls.back().number != num_calls_) {
    return illegal("run.no_record",
                   "the emulator did not report on the call: its checks were not in force");
  }
  call_ = calls.back();
  return std::nullopt;
}

bool Measurement::may_use_all() const { return policy_.operators.contains("*"); }

// Right values that no kernel made.
Measurement::EarlyOutcome Measurement::host_made() const {
  if (!call_ || may_use_all()) return std::nullopt;
  const auto illegal = [](std::string message) {
    return task::Illegal{"run", {{"run.host_output", std::move(message), {}}}};
  };
  if (const int64_t others = call_->from_host + call_->from_nowhere; others > 0) {
    return illegal("no kernel of the candidate wrote " + std::to_string(others) +
                   " bytes of the outputs: the host made them");
  }
  // A reference may return numbers alone; then nothing left the device as an output.
  if (call_->from_kernels + call_->from_inputs == 0 && call_->from_fills > 0) {
    return illegal("no kernel of the candidate wrote the outputs: they were filled");
  }
  if (call_->unknown_reads == 0) return std::nullopt;
  return illegal("a kernel read " + std::to_string(call_->unknown_reads) +
                 " bytes that no kernel, copy or fill had written");
}

// The emulator can tell a constant from a right answer where the comparison cannot.
Measurement::EarlyOutcome Measurement::constant_answer() const {
  if (!call_ || may_use_all() || !judge_.plan().grade.is_trivial() || call_->reads_given) {
    return std::nullopt;
  }
  return task::Illegal{
      "run",
      {{task::kConstantAnswer,
        "no kernel read anything of what it was given: the outputs are the same for all inputs",
        {}}}};
}

Result<Measurement::Checked> Measurement::check(const RunAnswer& run, const Fd& region,
                                                int trial_index) {
  worker::JudgeCheckQuestion question{trial_index, run.outputs, run.buffers, std::nullopt};
  if (call_) {
    const DigestKey key = session_.digest_key();
    question.digest = worker::Digest{key.weight, key.offset, call_->digest};
  }
  return judge_.ask(question, limits_.judge_s, &region);
}

task::Outcome Measurement::uncheckable(Error error, task::Trial trial) {
  // A judge on the CPU has memory of its own, and a fresh one all of it.
  if (program_.is_emulated) error.code = ErrorCode::kUnavailable;
  check_error_ = with_context(error, "check");
  task::OutputCheck malformed;
  malformed.path = "output";
  malformed.problem = "malformed";
  malformed.detail = error.message.substr(0, kDetailBytesMax);
  trial.checks.push_back(std::move(malformed));
  trials_.push_back(std::move(trial));
  for (task::Trial& each : trials_) each.passed = false;
  return task::Wrong{0, false, trials_};
}

// The processors' time of an emulated candidate is limited, which says how much it computes however
// many others there are; the clock ends what has no share of them.
template <typename Question>
Answer Measurement::ask(const Question& question, const Fd* region, double limit_s) {
  MC_CHECK((region != nullptr) == Question::kHasRegion);
  const std::string text = question.to_json();
  if (!program_.is_emulated) return session_.ask(text, region, Seconds(limit_s));
  session_.limit_work(Seconds(limit_s));
  return session_.ask(text, region, Seconds(limit_s * kWallFactor));
}

// The candidate process had taken the room on the device that the judge does not find, but finds
// once the candidate process has ended.
template <typename Question>
Result<worker::Response<Question>> Measurement::ask_judge(const Question& question) {
  auto told = judge_.ask(question, limits_.judge_s);
  if (told || told.error().code != ErrorCode::kExhausted) return told;
  session_.end();
  is_judge_crowded_out_ = judge_.ask(question, limits_.judge_s).has_value();
  return told;
}

task::Outcome Measurement::out_of_memory(const char* stage) const {
  return task::OutOfMemory{stage, limits_.child.memory_bytes};
}

std::vector<task::KernelFinding> Measurement::new_findings() {
  const std::string& report = session_.report();
  const std::string fresh = report.substr(std::min(report_read_, report.size()));
  report_read_ = report.size();
  return decode_findings(fresh, program_.locate);
}

// The emulator tells of each place once, in the trial that met it first; but a race or an
// uninitialised read is a fault of the kernel, whatever the values were, and fails every trial of
// those that count, or of those that do not.
double Measurement::share_passed(std::span<task::Trial> trials) {
  if (trials.empty()) return 1;
  const auto has_findings = [](const task::Trial& trial) { return !trial.findings.empty(); };
  if (std::ranges::any_of(trials, has_findings)) {
    for (task::Trial& trial : trials) trial.passed = false;
  }
  const auto num = std::ranges::count_if(trials, &task::Trial::passed);
  return static_cast<double>(num) / static_cast<double>(trials.size());
}

task::Outcome Measurement::conclude() {
  const auto trials = std::span(trials_);
  const auto num_main = static_cast<size_t>(std::ranges::count_if(judge_.plan().trials, is_main));
  const size_t num_counted = judge_.plan().needs_general ? trials.size() : num_main;
  const double q = share_passed(trials.first(num_counted));
  const double generality = share_passed(trials.subspan(num_counted));
  if (q == 1) return task::Passed{trials_, std::nullopt, generality};
  bool fails_elsewhere = false;
  for (size_t i = num_main; i < trials.size(); ++i) {
    fails_elsewhere |= !trials[i].passed && judge_.plan().trials.at(i).shape != kMainShape;
  }
  const bool is_specialised =
      fails_elsewhere && std::ranges::all_of(trials.first(num_main), &task::Trial::passed);
  return task::Wrong{q, is_specialised, trials_};
}

// A crash of a candidate that asked the device process for what it does not have.  Wrong values
// have no such excuse: who says so of itself would never be scored.
bool Measurement::lacks_there(const task::Outcome& outcome, std::string& what) {
  if (device_ == nullptr || !std::holds_alternative<task::Crashed>(outcome)) return false;
  const auto used = device_->used();
  if (used) what = used->unsupported;
  return !what.empty();
}

Measured Measurement::finish(task::Outcome outcome) {
  if (std::string what; lacks_there(outcome, what)) {
    outcome = task::Unsupported{{{"device.unsupported", "the device process has no " + what, {}}}};
  }
  if (auto* crashed = std::get_if<task::Crashed>(&outcome)) crashed->trials = trials_;
  Measured measured{std::move(outcome),
                    aten_ops_,
                    session_.memory_peak_bytes(),
                    session_.output_tail(),
                    state_,
                    std::nullopt,
                    nullptr,
                    check_error_};
  // The fault of a kernel is an exception too, and what is left on the device fails later calls.
  const bool may_be_faulty = device_ != nullptr && has_thrown_;
  if (std::holds_alternative<task::Passed>(measured.outcome) && !spoilt_by_ && !may_be_faulty) {
    measured.candidate = std::move(session_);
  }
  return measured;
}

}  // namespace mc::execute
