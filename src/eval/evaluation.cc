// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <set>

#include "compile/extension.h"
#include "compile/locator.h"
#include "compile/toolchain.h"
#include "core/check.h"
#include "core/hash.h"
#include "eval/device_share.h"
#include "eval/excuse.h"
#include "eval/fixed_sizes.h"
#include "eval/judge_pool.h"
#include "eval/machine.h"
#include "eval/strict.h"
#include "eval/timing_stage.h"
#include "execute/executor.h"
#include "legality/extract.h"
#include "legality/flags.h"
#include "legality/policy.h"
#include "legality/static_rules.h"
#include "legality/symbols.h"

namespace mc::eval {
namespace {

// A GPU computes native shapes; what does not fit into its memory is for the driver to refuse.
constexpr double kCudaCostMax = 1e16;
constexpr int64_t kCudaBytesMax = int64_t{24} << 30;

execute::JudgeOptions judge_options(const Options& options) {
  const Correctness& wanted = options.correctness;
  execute::JudgeOptions judge{wanted.trials,          wanted.distributions,  wanted.shapes,
                              wanted.require_general, wanted.tolerance_fp32, wanted.tolerance_half};
  if (options.backend == task::Backend::kCuda) {
    judge.cost_max = kCudaCostMax;
    judge.bytes_max = kCudaBytesMax;
  }
  return judge;
}

}  // namespace

Evaluation::Evaluation(const Parts& parts, const task::Task& task, const task::Candidate& candidate)
    : parts_(parts),
      task_(task),
      candidate_(candidate),
      use_(parts.is_alone ? DeviceShare::Use::kAlone : DeviceShare::Use::kTogether) {
  verdict_.task = task.id;
  verdict_.candidate = candidate.id;
  verdict_.backend = parts.machine.backend;
  verdict_.seed = parts.key.derive({candidate.id, candidate.answer, task.code});
  verdict_.policy = parts.policy.version;
}

Evaluation::~Evaluation() = default;

task::Verdict Evaluation::run() {
  Stage stage = judge_without_throwing();
  if (!stage && stage.error().code == ErrorCode::kExhausted) {
    is_short_of_memory_ = true;
    verdict_.outcome = task::Unsupported{{{"task.does_not_fit", stage.error().message, {}}}};
    return std::move(verdict_);
  }
  if (!stage) {
    verdict_.outcome = task::Infra{stage.error().message};  // The judge may be broken: not kept.
    return std::move(verdict_);
  }
  if (judge_ != nullptr) {
    judge_->end_baselines();
    parts_.judges.give_back(judge_key_, std::move(judge_));
  }
  verdict_.outcome = std::move(stage.value().value());
  is_short_of_memory_ = std::holds_alternative<task::OutOfMemory>(verdict_.outcome);
  return std::move(verdict_);
}

// An exception ends this evaluation alone.
Evaluation::Stage Evaluation::judge_without_throwing() {
  try {
    return judge_all();
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kUnavailable, std::string("exception: ") + exception.what()};
  }
}

Evaluation::Stage Evaluation::judge_all() {
  struct Step {
    const char* name;
    Stage (Evaluation::*run)();
  };
  static constexpr Step kSteps[] = {
      {"extract", &Evaluation::extract},        {"inspect", &Evaluation::inspect},
      {"judge", &Evaluation::open_judge},       {"record", &Evaluation::record},
      {"flags", &Evaluation::check_flags},      {"rules", &Evaluation::check_sources},
      {"compile", &Evaluation::compile},        {"symbols", &Evaluation::check_symbols},
      {"judge", &Evaluation::take_judge_again}, {"measure", &Evaluation::measure},
      {"strict", &Evaluation::strict},          {"time", &Evaluation::time},
  };
  for (const Step& step : kSteps) {
    if (step.run == &Evaluation::strict && !parts_.options.strict) continue;
    const auto start = std::chrono::steady_clock::now();
    MC_TRY(Decided decided, (this->*step.run)(), step.name);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    verdict_.telemetry.stages.push_back({step.name, taken.count()});
    if (decided) return decided;
  }
  return Error{ErrorCode::kUnavailable, "no stage decided"};
}

Evaluation::Stage Evaluation::extract() {
  legality::Extraction extraction = legality::extract(candidate_.answer);
  if (auto* failed = std::get_if<task::Unextractable>(&extraction)) {
    return Decided(std::move(*failed));
  }
  source_ = std::move(std::get<legality::Extracted>(extraction).module);
  verdict_.candidate_hash = content_hash({source_});
  return Decided();
}

Evaluation::Stage Evaluation::inspect() {
  MC_TRY(auto stage, parts_.executor.inspect(source_, parts_.policy.python_json), "inspect");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Decided(std::move(*outcome));
  auto& inspection = std::get<execute::InspectorAnswer>(stage);
  if (!inspection.syntax_error.empty()) {
    return Decided(
        task::Unextractable{"syntax_error", inspection.syntax_error, inspection.syntax_place});
  }
  if (std::ranges::find(inspection.classes, "ModelNew") == inspection.classes.end()) {
    return Decided(task::Unextractable{"no_model_new", "the module defines no class ModelNew", {}});
  }
  if (!inspection.unsupported.empty()) {
    return Decided(task::Unsupported{std::move(inspection.unsupported)});
  }
  if (parts_.options.static_rules && !inspection.findings.empty()) {
    return Decided(task::Illegal{"static", std::move(inspection.findings)});
  }
  return Decided();
}

Evaluation::Stage Evaluation::open_judge() {
  judge_key_ = content_hash({task_.code});
  judge_ = parts_.judges.take(judge_key_);
  if (judge_ != nullptr) {
    hold_memory(need_of_call(judge_->plan().call_bytes));
  } else {
    auto opened = open_new_judge(need_of_opening(parts_.memory));
    if (!opened && opened.error().code == ErrorCode::kExhausted && !parts_.is_alone) {
      // What others hold of the memory may have been too much.
      memory_.reset();
      opened = open_new_judge(DeviceMemory::kAll);
    }
    MC_TRY(Decided decided, std::move(opened), "judge");
    if (decided) return decided;
  }
  const auto turn = parts_.device.take(use_);
  MC_TRY_VOID(judge_->begin(derive_seed(verdict_.seed, "judge"), parts_.options.limits.judge_s),
              "judge");
  memory_.reset();
  verdict_.telemetry.reduction = judge_->plan().shapes.at(0).reduction;
  return Decided();
}

Evaluation::Stage Evaluation::take_judge_again() {
  return judge_ == nullptr ? open_judge() : Stage(Decided());
}

// REQUIRES: no turn of the device is held, by which those who hold memory go on.
void Evaluation::hold_memory(int64_t bytes) {
  MC_CHECK(!memory_);  // Who waits for more with some in hand may wait for itself.
  if (!parts_.is_alone) memory_.emplace(parts_.memory.take(bytes));
}

// The process comes first: while it is made others may have the memory.
Evaluation::Stage Evaluation::open_new_judge(int64_t bytes) {
  using Spare = execute::Executor::Spare;
  auto idle = parts_.judges.take_any_where_full();
  std::optional<execute::Session> session;
  if (idle != nullptr) {
    session = std::move(*idle).take_session();
  } else {
    MC_TRY(session, parts_.executor.judge(Spare::kWait), "judge");
  }
  hold_memory(bytes);
  if (bytes == DeviceMemory::kAll) parts_.judges.clear();
  const auto turn = parts_.device.take(use_);
  auto stage =
      parts_.executor.open_judge(std::move(*session), task_.code, judge_options(parts_.options));
  if (!stage) return stage.error();
  if (auto* outcome = std::get_if<task::Outcome>(&*stage)) return Decided(std::move(*outcome));
  judge_ = std::move(std::get<std::unique_ptr<execute::Judge>>(*stage));
  return Decided();
}

Evaluation::Stage Evaluation::record() {
  MC_TRY(auto stage, parts_.executor.record(source_, *judge_), "record");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Decided(std::move(*outcome));
  auto extensions = compile::parse_extensions(std::get<std::string>(stage));
  if (!extensions) {
    const task::Exception garbled{"ProtocolError", extensions.error().message, {}, {}};
    return Decided(task::Crashed{"record", garbled, 0, 0, {}, {}});
  }
  extensions_ = std::move(extensions).value();
  if (extensions_.empty()) {
    return Decided(task::Illegal{
        "static",
        {{"native.none", "the module compiles no native source with load_inline or load", {}}}});
  }
  mapper_ = std::make_unique<compile::PlaceMapper>(source_, extensions_);
  return Decided();
}

// What is allowed is all that stays: the toolchains pass it on as it is.
Evaluation::Stage Evaluation::check_flags() {
  std::vector<task::RuleFinding> findings;
  for (compile::Extension& extension : extensions_) {
    legality::CheckedFlags checked = legality::check_flags(
        parts_.policy,
        {extension.extra_cflags, extension.extra_cuda_cflags, extension.extra_ldflags});
    std::ranges::move(checked.findings, std::back_inserter(findings));
    extension.extra_cflags = std::move(checked.passed.cxx);
    extension.extra_cuda_cflags = std::move(checked.passed.cuda);
    extension.extra_ldflags = std::move(checked.passed.link);
  }
  if (findings.empty()) return Decided();
  return Decided(task::Illegal{"static", std::move(findings)});
}

std::vector<legality::NativeSource> Evaluation::native_sources() const {
  std::vector<legality::NativeSource> sources;
  for (const compile::Extension& extension : extensions_) {
    for (const compile::Unit& unit : compile::make_units(extension)) {
      for (const compile::SourceFile& piece : unit.pieces)
        sources.push_back({piece.name, piece.text});
    }
    for (const compile::SourceFile& file : extension.files)
      sources.push_back({file.name, file.text});
  }
  return sources;
}

void Evaluation::place_in_candidate(std::vector<task::RuleFinding>& findings) const {
  for (task::RuleFinding& found : findings) {
    if (found.place.line == 0) continue;
    found.place = mapper_->map(found.place.source, found.place.line, found.place.column);
  }
}

Evaluation::Stage Evaluation::check_sources() {
  if (!parts_.options.static_rules) return Decided();
  std::vector<task::RuleFinding> findings =
      legality::check_sources(parts_.policy, native_sources());
  if (findings.empty()) return Decided();
  place_in_candidate(findings);
  return Decided(task::Illegal{"static", std::move(findings)});
}

Evaluation::Stage Evaluation::compile() {
  const compile::CompileLimits limits{parts_.options.limits.compile_s,
                                      parts_.options.limits.memory_bytes,
                                      parts_.options.allow_weak_sandbox};
  // A process that holds a context of the device serves others meanwhile.
  if (parts_.machine.backend == task::Backend::kCuda) {
    parts_.judges.give_back(judge_key_, std::move(judge_));
  }
  verdict_.telemetry.compile_cached = true;
  for (const compile::Extension& extension : extensions_) {
    MC_TRY(compile::Compilation compilation,
           parts_.machine.toolchain->compile(extension, *mapper_, limits), "compile");
    verdict_.telemetry.compile_cpu_s += compilation.cpu_s;
    if (!compilation.full_headers.empty()) {
      verdict_.telemetry.full_headers.push_back(compilation.full_headers);
    }
    compile::Compiled& compiled = compilation.outcome;
    if (auto* failed = std::get_if<task::CompileFailed>(&compiled))
      return Decided(std::move(*failed));
    if (auto* lacking = std::get_if<task::Unsupported>(&compiled))
      return Decided(std::move(*lacking));
    if (auto* late = std::get_if<task::TimedOut>(&compiled)) return Decided(std::move(*late));
    if (auto* large = std::get_if<task::OutOfMemory>(&compiled)) return Decided(std::move(*large));
    artifacts_.push_back(std::move(std::get<compile::Artifact>(compiled)));
    verdict_.telemetry.compile_cached &= artifacts_.back().cached;
  }
  return Decided();
}

Evaluation::Stage Evaluation::check_symbols() {
  std::vector<task::RuleFinding> findings;
  const std::vector<legality::NativeSource> sources = native_sources();
  for (const compile::Artifact& artifact : artifacts_) {
    if (!artifact.undefined_symbols) {
      findings.push_back({"link.unreadable",
                          "what " + artifact.name + " wants from other libraries cannot be read",
                          {}});
      continue;
    }
    std::ranges::move(legality::check_symbols(parts_.policy, *artifact.undefined_symbols, sources),
                      std::back_inserter(findings));
  }
  if (findings.empty()) return Decided();
  place_in_candidate(findings);
  return Decided(task::Illegal{"link", std::move(findings)});
}

execute::Program Evaluation::program() const {
  execute::Program program{source_, {}, [](std::string_view, uint64_t) { return task::Place{}; }};
  for (const compile::Artifact& artifact : artifacts_) {
    program.libraries.push_back({artifact.key, artifact.module, artifact.library});
  }
  return program;
}

// With what finds the places of the emulator's findings.
execute::Program Evaluation::located_program() {
  execute::Program program = this->program();
  if (!parts_.machine.cpu) return program;
  program.is_emulated = true;
  if (locator_ == nullptr) {
    locator_ = std::make_unique<compile::Locator>(*parts_.machine.cpu, artifacts_, *mapper_);
  }
  program.locate = [this](std::string_view module, uint64_t pc) {
    return locator_->locate(module, pc);
  };
  return program;
}

// Where it fails at another shape than the task's own, the cause may stand in the candidate as a
// number.  A crash comes after the trials that its verdict holds: where those passed, elsewhere.
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
  verdict_.telemetry.fixed_sizes = lines_with_sizes(source_, sizes);
}

Evaluation::Stage Evaluation::measure() {
  const execute::Program program = located_program();
  MC_TRY(execute::Session contestant, parts_.executor.contestant(execute::Executor::Spare::kWait),
         "measure");
  hold_memory(need_of_call(judge_->plan().call_bytes));
  std::optional<DeviceShare::Turn> turn(parts_.device.take(use_));
  // Who is to be timed need not wait for all trials of the others.
  const auto pause = [&](execute::Session& running) {
    if (use_ == DeviceShare::Use::kAlone || !parts_.device.is_wanted()) return;
    running.rest();
    turn.reset();
    turn.emplace(parts_.device.take(use_));
  };
  MC_TRY(execute::Measured measured,
         parts_.executor.measure(std::move(contestant), program, *judge_, parts_.run_policy,
                                 derive_seed(verdict_.seed, "schedule"), pause),
         "measure");
  for (const auto& [name, count] : measured.aten_ops) verdict_.telemetry.aten_ops[name] = count;
  verdict_.telemetry.memory_peak_bytes = measured.memory_peak_bytes;
  verdict_.telemetry.output_tail = measured.output_tail;
  if (measured.check_error && !parts_.is_second) return *measured.check_error;
  verdict_.telemetry.state = std::move(measured.state);
  note_fixed_sizes(measured.outcome);
  MC_TRY_VOID(excuse(program, measured.outcome), "measure");
  if (!std::holds_alternative<task::Passed>(measured.outcome)) {
    return Decided(std::move(measured.outcome));
  }
  passed_ = std::move(measured.outcome);
  if (parts_.options.strict) return Decided();  // The one that is timed starts after all that.
  if (!is_timed()) return passed_;
  if (!measured.contestant) return Decided();  // Another one will be timed.
  contestant_ = std::make_unique<execute::Session>(std::move(*measured.contestant));
  contestant_->rest();
  return Decided();
}

// Where only the emulator may be the reason of a failure, the candidate may show that it is.
Status Evaluation::excuse(const execute::Program& program, task::Outcome& outcome) {
  if (!program.is_emulated) return ok();
  std::set<int64_t> sizes;
  for (const auto& [name, size] : verdict_.telemetry.reduction.native) {
    if (!lines_with_sizes(source_, {size}).empty()) sizes.insert(size);
  }
  const std::optional<Excuse> excuse = excuse_for(outcome, judge_->plan(), sizes);
  if (!excuse) return ok();
  const Limits& limits = parts_.options.limits;
  MC_TRY(const bool is_offered, judge_->offer(excuse->shape, limits.judge_s), "excuse");
  std::optional<task::Outcome> tried;
  if (is_offered) {
    MC_TRY(tried,
           parts_.executor.measure_last(program, *judge_, parts_.run_policy,
                                        derive_seed(verdict_.seed, "schedule"),
                                        std::max(excuse->forward_s, limits.forward_s)),
           "excuse");
  }
  if (is_excused(*excuse, tried)) outcome = task::Unsupported{{excuse->why}};
  return ok();
}

bool Evaluation::is_timed() const {
  return parts_.machine.backend == task::Backend::kCuda && parts_.options.timing.enabled;
}

Evaluation::Stage Evaluation::strict() {
  const execute::Program program = located_program();
  std::vector<std::string> kernels;
  for (const compile::Artifact& artifact : artifacts_) {
    for (const auto& resources : artifact.kernels) kernels.push_back(resources.kernel);
  }
  const StrictSubject subject{
      task_.code, program, kernels, verdict_.seed, judge_options(parts_.options), use_};
  Strict strict(parts_, subject);
  auto decided = strict.run(std::get<task::Passed>(*passed_));
  verdict_.telemetry.audits = strict.audits();
  if (!decided || *decided || is_timed()) return decided;
  return passed_;
}

Evaluation::Stage Evaluation::time() {
  const execute::Program program = this->program();
  const TimingSubject subject{task_, program, artifacts_, *judge_, use_};
  TimingStage timing(parts_, subject);
  auto stage = timing.run(std::move(contestant_));
  std::ranges::copy(timing.laps(), std::back_inserter(verdict_.telemetry.stages));
  if (!stage) return stage.error();
  if (auto* outcome = std::get_if<task::Outcome>(&*stage)) return Decided(std::move(*outcome));
  auto& passed = std::get<task::Passed>(*passed_);
  passed.performance = std::get<task::Performance>(std::move(*stage));
  return Decided(std::move(*passed_));
}

}  // namespace mc::eval
