// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compile/extension.h"
#include "compile/toolchain.h"
#include "core/cancel.h"
#include "core/check.h"
#include "core/hash.h"
#include "core/log.h"
#include "eval/known_tasks.h"
#include "eval/limitation.h"
#include "eval/machine.h"
#include "eval/memory_need.h"
#include "eval/strict.h"
#include "eval/timing_stage.h"
#include "execute/executor.h"
#include "legality/policy.h"
#include "task/fixed_sizes.h"
#include "task/musa_device.h"

namespace mc::eval {
namespace {

// True if a candidate process could not send a descriptor, since too many of this user's
// descriptors were in flight; another candidate may have sent them.
bool is_crowded_out(const task::Outcome& outcome) {
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  return crashed != nullptr && crashed->exception && crashed->exception->type == "OSError" &&
         crashed->exception->message.starts_with("[Errno 109]");
}

constexpr int64_t kKeptBytesMax = int64_t{1} << 28;

// The entries of a verdict's not_tried for sizes that were reduced.
std::vector<std::string> own_sizes_not_tried(const task::Reduction& reduction) {
  std::vector<std::string> sizes;
  for (const auto& [name, native] : reduction.native) {
    const auto used = reduction.used.find(name);
    if (used == reduction.used.end() || used->second == native) continue;
    sizes.push_back(fmt::format("{} {} ({} was tried)", name, native, used->second));
  }
  if (sizes.empty()) return {};
  return {fmt::format("its own sizes: {}", fmt::join(sizes, ", "))};
}

// Ends all idle processes and so frees their memory.
void end_idle(const EvaluationContext& context) {
  context.judges.clear();
  context.executor.end_idle();
}

}  // namespace

Evaluation::Evaluation(const EvaluationContext& context, const PreparedCandidate& prepared)
    : context_(context),
      prepared_(prepared),
      use_(context.is_alone ? Schedule::Use::kExclusive : Schedule::Use::kShared),
      verdict_(prepared.verdict),
      judge_key_(judge_key_of(prepared)),
      time_budget_{std::chrono::duration<double>(context.options.limits.candidate_s)} {
  const task::Candidate& candidate = prepared.candidate;
  verdict_.protocol = protocol_of(context.options, context.compute_device, context.policy.version,
                                  prepared.verdict.protocol.correctness);
  verdict_.protocol.dialect = prepared.verdict.protocol.dialect;
  verdict_.protocol.musa_architecture = prepared.verdict.protocol.musa_architecture;
  verdict_.seed = context.key.derive({candidate.id, candidate.answer, prepared.task.code});
}

Evaluation::~Evaluation() { static_cast<void>(end_candidate()); }

task::Verdict Evaluation::run() {
  MC_CHECK(judge_ == nullptr && !passed_);  // It runs once.
  std::vector<Step<Evaluation>> steps{{"judge", &Evaluation::open_judge},
                                      {"measure", &Evaluation::measure}};
  if (context_.options.strict) steps.push_back({"strict", &Evaluation::strict});
  if (is_timed()) steps.push_back({"time", &Evaluation::time});
  Stage stage = run_steps<Evaluation>(*this, steps, verdict_);
  if (!stage && stage.error().code == ErrorCode::kExhausted) {
    is_short_of_memory_ = true;
    verdict_.outcome = task::Unsupported{{{"task.does_not_fit", stage.error().message, {}}}};
    return std::move(verdict_);
  }
  if (!stage && stage.error().code == ErrorCode::kUnsupported) {
    verdict_.outcome = task::Unsupported{{{"task.fails", stage.error().message, {}}}};
    return std::move(verdict_);
  }
  if (!stage) {
    // The judge may be broken, so it is not kept.
    verdict_.outcome = task::Infra{stage.error().message};
    return std::move(verdict_);
  }
  // The judge of a cancelled evaluation may have been killed.
  if (judge_ != nullptr && !is_cancelled() && !execute::changes_settings(prepared_.task.code) &&
      judge_->call(worker::JudgeRestRequest(), context_.options.limits.judge_s)) {
    context_.judges.give_back(judge_key_, {std::move(seat_), std::move(judge_), true});
  }
  MC_CHECK(stage->has_value());  // The last stage decides.
  verdict_.outcome = std::move(**stage);
  is_short_of_memory_ = std::holds_alternative<task::OutOfMemory>(verdict_.outcome);
  return std::move(verdict_);
}

Stage Evaluation::open_judge() {
  // An exclusive evaluation must not wait: all other evaluations wait for it.
  const bool may_wait = !context_.is_alone;
  const auto start = std::chrono::steady_clock::now();
  // Other candidates of an unknown task wait for this turn.
  std::unique_ptr<KnownTasks::Turn> first;
  if (may_wait) first = context_.known_tasks.take_turn(judge_key_);
  JudgePool::Lease lease = context_.judges.take(judge_key_, may_wait);
  seat_ = std::move(lease.seat);
  add_wait(verdict_, "wait.judge", start);
  if (is_cancelled()) return Error{ErrorCode::kUnavailable, "cancelled"};
  // A new judge shows whether the judge caused the first failure.
  if (context_.is_second) lease = {};
  if (lease.is_open) {
    judge_ = std::move(lease.judge);
    hold_memory(need_of_opening(judge_->plan().call_memory, context_.device.capacity()));
  } else {
    MC_TRY(EarlyOutcome decided, open_new_judge(std::move(lease.judge), /*takes_all=*/false),
           "judge");
    if (decided) return decided;
  }
  MC_CHECK(judge_ != nullptr);
  const auto turn = take_turn();
  MC_TRY_VOID(judge_->begin(derive_seed(verdict_.seed, "judge"), context_.options.limits.judge_s),
              "judge");
  context_.known_tasks.learn(judge_key_, {judge_->known(), judge_->plan().call_memory});
  memory_.reset();
  verdict_.protocol.correctness.mode = judge_->plan().mode;
  verdict_.task_grade = judge_->plan().grade;
  verdict_.telemetry.reduction = judge_->plan().shapes.at(0).reduction;
  verdict_.not_tried = own_sizes_not_tried(verdict_.telemetry.reduction);
  return EarlyOutcome();
}

// REQUIRES: no turn of the device is held; evaluations that hold memory need turns to progress.
void Evaluation::hold_memory(int64_t bytes) {
  MC_CHECK(!memory_);  // A second request while memory is held could wait for that memory forever.
  if (context_.is_alone) return;
  const auto start = std::chrono::steady_clock::now();
  memory_.emplace(context_.device.memory(bytes));
  add_wait(verdict_, "wait.memory", start);
  const std::chrono::duration<double, std::milli> waited = std::chrono::steady_clock::now() - start;
  if (waited.count() < 1) return;  // A machine without a device never waits for memory.
  log_debug(fmt::format("{}: waited {:.0f} ms for {:.1f} GiB of the device", verdict_.candidate,
                        waited.count(), static_cast<double>(bytes) / (1 << 30)));
}

Scheduler::Hold Evaluation::take_turn() {
  const auto start = std::chrono::steady_clock::now();
  Scheduler::Hold turn = context_.device.turn(use_);
  add_wait(verdict_, "wait.turn", start);
  return turn;
}

// The process is started before memory is requested, so that others can use the memory in the
// meantime.
Stage Evaluation::open_new_judge(std::unique_ptr<execute::Judge> idle, bool takes_all) {
  using Acquire = execute::Executor::Acquire;
  std::optional<execute::Session> session;
  if (idle != nullptr) {
    session = std::move(*idle).take_session();
  } else {
    MC_TRY(session, context_.executor.judge(Acquire::kWait), "judge");
  }
  const execute::JudgeOptions options =
      judge_options(correctness(), context_.machine, context_.options);
  KnownTask known = context_.known_tasks.find(judge_key_);
  if (known.text.empty() && !context_.is_alone && context_.compute_device != nullptr) {
    MC_TRY(known.memory, context_.executor.estimate(*session, prepared_.task.code, options),
           "judge");
  }
  hold_memory(takes_all ? Schedule::kAll
                        : need_of_opening(known.memory, context_.device.capacity()));
  if (takes_all) end_idle(context_);
  std::optional<Scheduler::Hold> turn(take_turn());
  auto stage =
      context_.executor.open_judge(std::move(*session), prepared_.task.code, options, known.text);
  if (!stage) {
    // Memory that other evaluations hold may have been the reason.
    const bool may_fit = stage.error().code == ErrorCode::kExhausted && !takes_all;
    if (!may_fit || context_.is_alone) return stage.error();
    turn.reset();
    memory_.reset();
    return open_new_judge(nullptr, /*takes_all=*/true);
  }
  if (auto* outcome = std::get_if<task::Outcome>(&*stage)) return EarlyOutcome(std::move(*outcome));
  judge_ = std::move(std::get<std::unique_ptr<execute::Judge>>(*stage));
  return EarlyOutcome();
}

execute::Program Evaluation::program() {
  execute::Program program{prepared_.source, {}, [](std::string_view, uint64_t, std::string_view) {
                             return task::SourceLocation{};
                           }};
  program.time = &time_budget_;
  program.described =
      task::described(verdict_.protocol.dialect, verdict_.protocol.musa_architecture);
  for (const compile::Artifact& artifact : prepared_.artifacts) {
    program.libraries.push_back({artifact.key, artifact.module, artifact.library});
  }
  return program;
}

// The program with a function that maps the device's findings to source locations.
execute::Program Evaluation::located_program() {
  execute::Program program = this->program();
  if (!context_.machine.has_ptx_device) return program;
  if (mapper_ == nullptr) {
    const auto extensions = compile::parse_extensions(prepared_.recorded);
    MC_CHECK(extensions.has_value());  // They were parsed before they were compiled.
    mapper_ = std::make_unique<compile::LocationMapper>(prepared_.source, *extensions);
  }
  program.locate = [this](std::string_view file, uint64_t line, std::string_view kernel) {
    return mapper_->map(std::filesystem::path(file).filename().string(), static_cast<int>(line), 0,
                        kernel);
  };
  return program;
}

// Looks for the task's own sizes in the source of a candidate that fails at another shape, since
// the source may contain them as fixed numbers.  A crash happens after the trials of its outcome:
// where these passed, it happened at another shape.
void Evaluation::note_fixed_sizes(const task::Outcome& outcome) {
  const std::vector<task::Trial>* trials = nullptr;
  if (const auto* wrong = std::get_if<task::Wrong>(&outcome)) trials = &wrong->trials;
  if (const auto* passed = std::get_if<task::Passed>(&outcome)) trials = &passed->trials;
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  if (crashed != nullptr) trials = &crashed->trials;
  const auto fails_elsewhere = [](const task::Trial& trial) {
    return !trial.passed && trial.shape != "native";
  };
  const auto has_passed = [](const task::Trial& trial) { return trial.passed; };
  if (trials == nullptr) return;
  const bool is_elsewhere =
      std::ranges::any_of(*trials, fails_elsewhere) ||
      (crashed != nullptr && !trials->empty() && std::ranges::all_of(*trials, has_passed));
  if (!is_elsewhere) return;
  std::set<int64_t> sizes;
  for (const auto& [name, size] : verdict_.telemetry.reduction.native) sizes.insert(size);
  for (const task::Trial& trial : *trials) {
    if (trial.shape != "native") continue;
    for (const auto& [name, size] : trial.constants) sizes.insert(size);
  }
  verdict_.telemetry.fixed_sizes = task::lines_with_sizes(prepared_.source, sizes);
}

Stage Evaluation::measure() {
  MC_CHECK(candidate_ == nullptr && device_ == nullptr);
  const execute::Program program = located_program();
  hold_memory(need_of_trials(judge_->plan().call_memory, judge_->plan().shapes.size()));
  std::optional<Scheduler::Hold> turn(take_turn());
  MC_TRY(execute::CandidateProcess candidate, context_.executor.candidate(program), "measure");
  // A candidate that waits to be timed need not wait for all trials of the others.
  const auto pause = [&](execute::Session& running) {
    if (use_ == Schedule::Use::kExclusive || !context_.device.is_exclusive_wanted()) return;
    running.suspend();
    turn.reset();
    turn.emplace(take_turn());
  };
  MC_TRY(execute::Measured measured,
         context_.executor.measure(std::move(candidate), program, *judge_, context_.run_policy,
                                   derive_seed(verdict_.seed, "schedule"), pause),
         "measure");
  if (context_.recording != nullptr) *context_.recording = std::move(measured.recording);
  for (const auto& [name, count] : measured.aten_ops) verdict_.telemetry.aten_ops[name] = count;
  verdict_.telemetry.memory_peak_bytes = measured.memory_peak_bytes;
  if (measured.compile_s > 0) {
    verdict_.telemetry.stages.push_back({"compile.triton", 1e3 * measured.compile_s});
  }
  if (measured.are_configurations_left) {
    verdict_.not_tried.emplace_back("some configurations of an autotuned kernel: time was up");
  }
  verdict_.telemetry.output_tail = measured.output_tail;
  MC_CHECK(measured.candidate.has_value() == (measured.device != nullptr));
  // The candidate process ends before another one may use its device process.
  device_ = std::move(measured.device);
  candidate_ = measured.candidate
                   ? std::make_unique<execute::Session>(std::move(*measured.candidate))
                   : nullptr;
  if (candidate_ != nullptr) candidate_->suspend();
  // The process that is timed is started after a strict run.  A candidate that keeps much memory is
  // started again, too: an evaluation must not request memory while it holds some.
  const bool keeps_much = kept_by_candidate(judge_->plan().call_memory) > kKeptBytesMax;
  if (!is_timed() || context_.options.strict || keeps_much) {
    MC_TRY_VOID(end_candidate(), "measure");
  }
  if (measured.check_error && !context_.is_second) return *measured.check_error;
  if (is_crowded_out(measured.outcome) && !context_.is_second) {
    return Error{ErrorCode::kUnavailable, "it could send no descriptor"};
  }
  verdict_.telemetry.state = std::move(measured.state);
  note_fixed_sizes(measured.outcome);
  // A candidate that was wrong before it was too slow is not unsupported.
  const bool is_slow = std::holds_alternative<task::TimedOut>(measured.outcome);
  if (!is_slow || !measured.has_failed) {
    MC_TRY_VOID(check_limitation(program, measured.outcome), "measure");
  }
  if (!std::holds_alternative<task::Passed>(measured.outcome)) {
    return EarlyOutcome(std::move(measured.outcome));
  }
  passed_ = std::move(measured.outcome);
  if (is_timed() || context_.options.strict) return EarlyOutcome();
  return passed_;
}

// Changes the outcome to `unsupported` where the device in software explains the failure, and
// further trials show that the candidate is right.
Status Evaluation::check_limitation(const execute::Program& program, task::Outcome& outcome) {
  if (!context_.machine.has_ptx_device) return ok();
  std::set<int64_t> sizes;
  for (const auto& [name, size] : verdict_.telemetry.reduction.native) {
    if (!task::lines_with_sizes(prepared_.source, {size}).empty()) sizes.insert(size);
  }
  const std::optional<DeviceLimitation> limitation = limitation_for(outcome, judge_->plan(), sizes);
  if (!limitation) return ok();
  const Limits& limits = context_.options.limits;
  const double limit_s = std::max(limitation->forward_s, limits.forward_s);
  std::vector<execute::Tried> tried;
  for (const char* shape : limitation->shapes) {
    MC_TRY(const bool is_offered, judge_->offer(shape, sizes, limits.judge_s), "limitation");
    if (!is_offered) continue;
    MC_TRY(execute::Tried one,
           context_.executor.measure_last(program, *judge_, context_.run_policy,
                                          derive_seed(verdict_.seed, "schedule"), limit_s),
           "limitation");
    tried.push_back(std::move(one));
    if (!limitation->is_slow || !std::holds_alternative<task::Passed>(tried.back().outcome)) break;
  }
  if (is_unsupported(*limitation, tried, limit_s)) outcome = task::Unsupported{{limitation->why}};
  return ok();
}

// The settings that were requested; the verdict's own have the mode that was used.
const task::Correctness& Evaluation::correctness() const {
  return prepared_.verdict.protocol.correctness;
}

bool Evaluation::is_timed() const {
  return context_.compute_device != nullptr && context_.options.timing.enabled;
}

Stage Evaluation::strict() {
  MC_CHECK(passed_.has_value());
  const execute::Program program = located_program();
  std::vector<std::string> kernels;
  for (const compile::Artifact& artifact : prepared_.artifacts) {
    for (const auto& resources : artifact.kernels) kernels.push_back(resources.kernel);
  }
  const StrictSubject subject{prepared_.task.code,
                              program,
                              kernels,
                              verdict_.seed,
                              judge_options(correctness(), context_.machine, context_.options),
                              use_};
  Strict strict(context_, subject);
  auto decided = strict.run(std::get<task::Passed>(*passed_));
  verdict_.telemetry.audits = strict.audits();
  if (!decided || *decided || is_timed()) return decided;
  return passed_;
}

Stage Evaluation::time() {
  MC_CHECK(passed_.has_value() && is_timed());
  const execute::Program program = this->program();
  memory_.reset();
  hold_memory(need_of_timing(judge_->plan().call_memory, context_.device.capacity()));
  const TimingSubject subject{prepared_.task, program, prepared_.artifacts,
                              *judge_,        use_,    correctness()};
  TimingStage timing(context_, subject);
  if (candidate_ == nullptr) {
    const auto turn = take_turn();
    MC_TRY(auto started,
           context_.executor.start_candidate(program, *judge_, context_.run_policy, random_seed()),
           "start");
    if (auto* outcome = std::get_if<task::Outcome>(&started)) {
      return EarlyOutcome(std::move(*outcome));
    }
    auto& candidate = std::get<execute::CandidateProcess>(started);
    candidate_ = std::make_unique<execute::Session>(std::move(candidate.session));
    device_ = std::move(candidate.device);
  }
  MC_CHECK(candidate_ != nullptr && device_ != nullptr);
  auto stage = timing.run(*candidate_, *device_);
  const bool is_its_doing = !stage && context_.is_second && device_->has_ended();
  MC_TRY_VOID(end_candidate(), "time");
  if (is_its_doing) return EarlyOutcome(execute::ended_device(stage.error()));
  std::ranges::copy(timing.stage_times(), std::back_inserter(verdict_.telemetry.stages));
  if (!stage) return stage.error();
  if (auto* outcome = std::get_if<task::Outcome>(&*stage)) return EarlyOutcome(std::move(*outcome));
  auto& passed = std::get<task::Passed>(*passed_);
  passed.performance = std::get<task::Performance>(std::move(*stage));
  return EarlyOutcome(std::move(*passed_));
}

// A clean device process goes on to serve another candidate.
Status Evaluation::end_candidate() {
  candidate_.reset();
  return context_.executor.give_back_device(std::move(device_));
}

std::string judge_key_of(const PreparedCandidate& prepared) {
  return content_hash({prepared.task.code, to_string(prepared.verdict.protocol.correctness)});
}

task::Verdict evaluate(EvaluationContext context, const PreparedCandidate& prepared) {
  MC_CHECK(!context.is_second && !context.is_alone);
  std::optional<Evaluation> evaluation(std::in_place, context, prepared);
  task::Verdict verdict = evaluation->run();
  const bool is_short_of_memory =
      context.compute_device != nullptr && evaluation->is_short_of_memory();
  evaluation.reset();  // Ends its processes, too.
  if (is_cancelled()) return verdict;
  if (!is_short_of_memory && !std::holds_alternative<task::Infra>(verdict.outcome)) return verdict;
  std::optional<Scheduler::Hold> all;
  if (is_short_of_memory) {
    // Other evaluations may have held the memory: a lack of memory counts only on an otherwise
    // unused device.
    all.emplace(context.device.memory(Schedule::kAll));
    end_idle(context);
    context.is_alone = true;
  }
  context.is_second = true;
  return evaluation.emplace(context, prepared).run();
}

}  // namespace mc::eval
