// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include <fmt/format.h>

#include "compile/extension.h"
#include "compile/locator.h"
#include "compile/toolchain.h"
#include "core/file.h"
#include "core/hash.h"
#include "eval/baseline_store.h"
#include "eval/device_share.h"
#include "eval/judge_pool.h"
#include "eval/machine.h"
#include "eval/strict.h"
#include "execute/device_speed.h"
#include "execute/executor.h"
#include "execute/provenance.h"
#include "execute/timing.h"
#include "legality/extract.h"
#include "legality/flags.h"
#include "legality/kernels.h"
#include "legality/policy.h"
#include "legality/static_rules.h"
#include "legality/symbols.h"

namespace mc::eval {
namespace {

// A GPU computes native shapes; what does not fit into its memory is for the driver to refuse.
constexpr double kCudaCostMax = 1e16;
constexpr int64_t kCudaBytesMax = int64_t{24} << 30;

execute::JudgeOptions judge_options(const Options& options, uint64_t seed) {
  const Correctness& wanted = options.correctness;
  execute::JudgeOptions judge{seed,          wanted.trials,         wanted.distributions,
                              wanted.shapes, wanted.tolerance_fp32, wanted.tolerance_half};
  if (options.backend == task::Backend::kCuda) {
    judge.cost_max = kCudaCostMax;
    judge.bytes_max = kCudaBytesMax;
  }
  return judge;
}

constexpr const char* kSpeedProtocol = "speed/1";
constexpr double kFloorSlack = 0.8;      // Of the time that bytes over bandwidth allow.
constexpr double kTraceTolerance = 1.1;  // Of kernels' time over the claimed one.
constexpr int kLooksStrict = 16;

// Faster than memory allows.  Operations do not count here: an algorithm may need fewer.
bool is_incredible(const task::Performance& performance) {
  const task::Floor& floor = performance.floor;
  const double memory_us = static_cast<double>(floor.bytes) / (floor.bandwidth_gbs * 1e3);
  return performance.time_us.median < kFloorSlack * memory_us;
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
  verdict_.seed = parts.seed;
  verdict_.policy = parts.policy.version;
}

Evaluation::~Evaluation() = default;

task::Verdict Evaluation::run() {
  Stage stage = judge_all();
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

Evaluation::Stage Evaluation::judge_all() {
  struct Step {
    const char* name;
    Stage (Evaluation::*run)();
  };
  static constexpr Step kSteps[] = {
      {"extract", &Evaluation::extract},   {"inspect", &Evaluation::inspect},
      {"judge", &Evaluation::open_judge},  {"record", &Evaluation::record},
      {"flags", &Evaluation::check_flags}, {"rules", &Evaluation::check_sources},
      {"compile", &Evaluation::compile},   {"symbols", &Evaluation::check_symbols},
      {"measure", &Evaluation::measure},   {"strict", &Evaluation::strict},
      {"time", &Evaluation::time},
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
  const std::string& rules = parts_.options.static_rules ? parts_.policy.python_json : "{}";
  MC_TRY(auto stage, parts_.executor.inspect(source_, rules, "candidate"), "inspect");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Decided(std::move(*outcome));
  auto& inspection = std::get<execute::InspectorAnswer>(stage);
  if (!inspection.syntax_error.empty()) {
    return Decided(
        task::Unextractable{"syntax_error", inspection.syntax_error, inspection.syntax_place});
  }
  if (std::ranges::find(inspection.classes, "ModelNew") == inspection.classes.end()) {
    return Decided(task::Unextractable{"no_model_new", "the module defines no class ModelNew", {}});
  }
  if (!inspection.findings.empty()) {
    return Decided(task::Illegal{"static", std::move(inspection.findings)});
  }
  return Decided();
}

Evaluation::Stage Evaluation::open_judge() {
  const uint64_t seed = derive_seed(parts_.seed, task_.code);
  judge_key_ = content_hash({task_.code, std::to_string(seed)});
  judge_ = parts_.judges.take(judge_key_);
  if (judge_ == nullptr) {
    const auto turn = parts_.device.take(use_);
    MC_TRY(auto stage, parts_.executor.open_judge(task_.code, judge_options(parts_.options, seed)),
           "judge");
    if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Decided(std::move(*outcome));
    judge_ = std::move(std::get<std::unique_ptr<execute::Judge>>(stage));
  }
  verdict_.telemetry.reduction = judge_->plan().shapes.at(0).reduction;
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

Evaluation::Stage Evaluation::check_sources() {
  if (!parts_.options.static_rules) return Decided();
  std::vector<legality::NativeSource> sources;
  for (const compile::Extension& extension : extensions_) {
    for (const compile::Unit& unit : compile::make_units(extension)) {
      for (const compile::SourceFile& piece : unit.pieces)
        sources.push_back({piece.name, piece.text});
    }
    for (const compile::SourceFile& file : extension.files)
      sources.push_back({file.name, file.text});
  }
  std::vector<task::RuleFinding> findings = legality::check_sources(parts_.policy, sources);
  for (task::RuleFinding& found : findings) {
    found.place = mapper_->map(found.place.source, found.place.line, found.place.column);
  }
  if (findings.empty()) return Decided();
  return Decided(task::Illegal{"static", std::move(findings)});
}

Evaluation::Stage Evaluation::compile() {
  const compile::CompileLimits limits{parts_.options.limits.compile_s,
                                      parts_.options.limits.memory_bytes,
                                      parts_.options.allow_weak_sandbox};
  verdict_.telemetry.compile_cached = true;
  for (const compile::Extension& extension : extensions_) {
    MC_TRY(compile::Compiled compiled,
           parts_.machine.toolchain->compile(extension, *mapper_, limits), "compile");
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
  for (const compile::Artifact& artifact : artifacts_) {
    std::ranges::move(legality::check_symbols(parts_.policy, artifact.undefined_symbols),
                      std::back_inserter(findings));
  }
  if (findings.empty()) return Decided();
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
  if (locator_ == nullptr) {
    locator_ = std::make_unique<compile::Locator>(*parts_.machine.cpu, artifacts_, *mapper_);
  }
  program.locate = [this](std::string_view module, uint64_t pc) {
    return locator_->locate(module, pc);
  };
  return program;
}

Evaluation::Stage Evaluation::measure() {
  const execute::Program program = located_program();
  const auto turn = parts_.device.take(use_);
  MC_TRY(execute::Measured measured,
         parts_.executor.measure(program, *judge_, parts_.policy.aten_allowed, parts_.seed),
         "measure");
  for (const auto& [name, count] : measured.aten_ops) verdict_.telemetry.aten_ops[name] = count;
  verdict_.telemetry.memory_peak_bytes = measured.memory_peak_bytes;
  verdict_.telemetry.output_tail = measured.output_tail;
  if (!measured.contestant) return Decided(std::move(measured.outcome));
  passed_ = std::move(measured.outcome);
  if (parts_.options.strict) return Decided();  // The one that is timed starts after all that.
  if (!is_timed()) return passed_;
  contestant_ = std::make_unique<execute::Session>(std::move(*measured.contestant));
  return Decided();
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
  const StrictSubject subject{task_.code, program, kernels, judge_options(parts_.options, 0), use_};
  Strict strict(parts_, subject);
  auto decided = strict.run(std::get<task::Passed>(*passed_));
  verdict_.telemetry.audits = strict.audits();
  if (!decided || *decided || is_timed()) return decided;
  return passed_;
}

// The process that the candidate is timed against.
Result<execute::Session*> Evaluation::baseline(const execute::Program& program) {
  const std::string& name = parts_.options.timing.baseline;
  if (name == "candidate") {
    MC_TRY(auto started, parts_.executor.start_candidate(program, *judge_, parts_.seed),
           "baseline");
    if (std::holds_alternative<task::Outcome>(started)) {
      return Error{ErrorCode::kUnavailable, "the candidate does not start a second time"};
    }
    judge_->keep_baseline(name, std::move(std::get<execute::Session>(started)));
  } else if (judge_->baseline(name) == nullptr) {
    MC_TRY(execute::Session session, parts_.executor.start_baseline(*judge_, {task_.code, ""}),
           "baseline");
    judge_->keep_baseline(name, std::move(session));
  }
  return judge_->baseline(name);
}

// The contestant that passed, at the main shape again; or another one, where that is gone.
Evaluation::Stage Evaluation::ready_contestant(const execute::Program& program) {
  if (contestant_ != nullptr) {
    MC_TRY(auto rebuilt, parts_.executor.rebuild(*judge_, *contestant_), "rebuild");
    if (auto* outcome = std::get_if<task::Outcome>(&rebuilt)) return Decided(std::move(*outcome));
    return Decided();
  }
  MC_TRY(auto started, parts_.executor.start_candidate(program, *judge_, parts_.seed), "start");
  if (auto* outcome = std::get_if<task::Outcome>(&started)) return Decided(std::move(*outcome));
  contestant_ = std::make_unique<execute::Session>(std::move(std::get<execute::Session>(started)));
  return Decided();
}

Evaluation::Stage Evaluation::time() {
  const execute::Program program = this->program();
  const auto turn = parts_.device.take(DeviceShare::Use::kAlone);
  MC_TRY(Decided unready, ready_contestant(program), "time");
  if (unready) return unready;
  MC_TRY(execute::Session * baseline, this->baseline(program), "time");
  MC_TRY(auto stage, time_once(*baseline, {}), "time");
  contestant_.reset();
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Decided(std::move(*outcome));
  auto timed = std::move(std::get<execute::Timed>(stage));
  MC_TRY(const execute::DeviceSpeed speed, device_speed(), "time");
  timed.performance.floor = execute::floor_of(speed, timed.work);
  if (is_incredible(timed.performance)) {
    MC_TRY(Decided decided, look_again(program, *baseline, timed), "second look");
    if (decided) return decided;
  }
  return note_timing(std::move(timed));
}

execute::Stage<execute::Timed> Evaluation::time_once(execute::Session& baseline,
                                                     execute::TimingOptions options) {
  options.budget_s = parts_.options.timing.budget_s;
  options.seed = random_seed();
  return execute::Timing(*judge_, parts_.executor.limits(), options, parts_.nvml)
      .run(*contestant_, baseline);
}

Result<execute::DeviceSpeed> Evaluation::device_speed() {
  const std::string identity = parts_.nvml == nullptr ? "" : parts_.nvml->identity();
  const std::string name = content_hash({kSpeedProtocol, identity}).substr(0, 32) + ".json";
  return execute::find_device_speed(cache_directory() / "devices" / name, *judge_,
                                    parts_.executor.limits().judge_s);
}

// A claim under the physical floor is timed again in a fresh process, with other seeds and many
// more looks at what it returned.  It stands when it is as fast again and the traced kernels agree:
// some tasks need not touch all of their inputs.
Result<Evaluation::Decided> Evaluation::look_again(const execute::Program& program,
                                                   execute::Session& baseline,
                                                   execute::Timed& timed) {
  MC_TRY(auto started, parts_.executor.start_candidate(program, *judge_, random_seed()), "start");
  if (auto* outcome = std::get_if<task::Outcome>(&started)) return Decided(std::move(*outcome));
  contestant_ = std::make_unique<execute::Session>(std::move(std::get<execute::Session>(started)));
  execute::TimingOptions options;
  options.looks = kLooksStrict;
  MC_TRY(auto stage, time_once(baseline, options), "time");
  contestant_.reset();
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Decided(std::move(*outcome));
  auto again = std::move(std::get<execute::Timed>(stage));
  again.performance.floor = timed.performance.floor;
  again.performance.timing.notes.push_back(
      "faster than the device can read all inputs and write all outputs: timed twice");
  timed = std::move(again);
  const execute::Provenance found = owners_of(timed);
  const double claimed_us = timed.performance.time_us.median;
  if (!is_incredible(timed.performance) || found.kernel_us <= kTraceTolerance * claimed_us) {
    return Decided();
  }
  return Decided(task::Illegal{
      "timing",
      {{"timing.under_floor",
        fmt::format("claims {:.3g} us a call, under the floor of {:.3g} us, while its kernels take "
                    "{:.3g} us",
                    claimed_us, timed.performance.floor.time_us, found.kernel_us),
        {}}}});
}

execute::Provenance Evaluation::owners_of(const execute::Timed& timed) const {
  std::vector<std::string> libraries;
  std::vector<execute::OwnKernel> own;
  for (const compile::Artifact& artifact : artifacts_) {
    libraries.push_back(artifact.library.string());
    for (const compile::KernelResources& kernel : artifact.kernels) {
      own.push_back(
          {kernel.kernel, kernel.spill_store_bytes + kernel.spill_load_bytes, kernel.registers});
    }
  }
  return execute::find_owners({timed.kernels, timed.calls_traced}, libraries, own);
}

Evaluation::Stage Evaluation::note_timing(execute::Timed timed) {
  execute::Provenance found = owners_of(timed);
  auto findings =
      legality::check_kernels(parts_.policy, found.kernels, found.own_share, found.is_late);
  if (!findings.empty()) return Decided(task::Illegal{"run", std::move(findings)});
  timed.performance.kernels = std::move(found.kernels);
  timed.performance.own_share = found.own_share;
  if (parts_.options.timing.baseline == "eager") compare_with_compiled(timed.performance);
  auto& passed = std::get<task::Passed>(*passed_);
  passed.performance = std::move(timed.performance);
  return Decided(std::move(*passed_));
}

// A task that torch.compile fails on has no such baseline; that is no fault of the candidate's.
void Evaluation::compare_with_compiled(task::Performance& performance) {
  const std::string& mode = parts_.options.timing.compile_mode;
  if (mode.empty()) return;
  const auto compiled = compiled_baseline(mode);
  if (!compiled) {
    performance.timing.notes.push_back("torch.compile: " + compiled.error().message);
    return;
  }
  performance.speedup_compile = speedup_over(*compiled, performance.speedup_eager);
  performance.time_compile_us = compiled->time_us;
}

Result<CompiledBaseline> Evaluation::compiled_baseline(const std::string& mode) {
  const std::string identity = parts_.nvml == nullptr ? "" : parts_.nvml->identity();
  const BaselineKey key{task_.code, mode, identity, parts_.machine.pytorch.version, false};
  if (const auto known = parts_.baselines.find(key)) return *known;
  MC_TRY(execute::Session compiled, parts_.executor.start_baseline(*judge_, {task_.code, mode}),
         "baseline");
  execute::StageLimits limits = parts_.executor.limits();
  limits.forward_s = limits.judge_s;  // The first call compiles.
  execute::TimingOptions options;
  options.is_trusted = true;
  options.seed = random_seed();
  execute::Timing timing(*judge_, limits, options, parts_.nvml);
  MC_TRY(auto stage, timing.run(compiled, *judge_->baseline("eager")), "torch.compile");
  if (std::holds_alternative<task::Outcome>(stage)) {
    return Error{ErrorCode::kUnavailable, "it does not run"};
  }
  const task::Performance& measured = std::get<execute::Timed>(stage).performance;
  const CompiledBaseline baseline{measured.speedup_eager, measured.time_us};
  MC_TRY_VOID(parts_.baselines.keep(key, baseline), "torch.compile");
  return baseline;
}

}  // namespace mc::eval
