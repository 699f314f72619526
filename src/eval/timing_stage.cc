// SPDX-License-Identifier: Apache-2.0
#include "eval/timing_stage.h"

#include <utility>
#include <variant>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "compile/toolchain.h"
#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"
#include "eval/machine.h"
#include "execute/children.h"
#include "legality/kernels.h"
#include "legality/policy.h"
#include "timing/call_comparison.h"
#include "timing/nvml.h"

namespace mc::eval {
namespace {

constexpr const char* kNotQuiet = "something else used the device while this was timed";
constexpr const char* kSpeedProtocol = "speed/2";
constexpr const char* kItself = "candidate";  // The baseline that is the candidate once more.
constexpr const char* kEager = "eager";
constexpr const char* kDefaultMode = "default";  // Of torch.compile.
constexpr double kFloorSlack = 0.8;              // Of the time that bytes over bandwidth allow.
constexpr int kSnapshotsStrict = 16;

// Faster than memory allows.  Operations do not count here: an algorithm may need fewer.
bool is_incredible(const timing::Timed& timed) {
  const task::Floor& floor = timed.performance.floor;
  MC_CHECK(floor.bandwidth_gbs > 0 && timed.claimed_us > 0);
  const double memory_us = static_cast<double>(floor.bytes) / (floor.bandwidth_gbs * 1e3);
  return timed.claimed_us < kFloorSlack * memory_us;
}

task::Outcome lacks_launches() {
  return task::Illegal{
      "run", {{"run.own_launch", "a timed call launched no kernel of the candidate's own", {}}}};
}

}  // namespace

execute::Stage<task::Performance> TimingStage::run(SessionPointer contestant) {
  MC_CHECK(laps_.empty());  // Once for each candidate.
  using Ran = std::variant<task::Performance, task::Outcome>;
  const auto start = [&] { return ready(std::move(contestant)); };
  MC_TRY(auto stage,
         run_comparison({"time", start, {}, context_.executor.limits(), !lacks_compiled()}),
         "time");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Ran(std::move(*outcome));
  auto timed = std::move(std::get<timing::Timed>(stage));
  MC_TRY(EarlyOutcome decided, check_claim(timed), "second look");
  if (decided) return Ran(std::move(*decided));

  timing::Provenance found = owners_of(timed);
  if (timed.is_idle && context_.run_policy.own_launches_min > 0) return Ran(lacks_launches());
  auto findings =
      legality::check_kernels(context_.policy, found.kernels, found.own_share, found.is_late);
  if (!findings.empty()) return Ran(task::Outcome(task::Illegal{"run", std::move(findings)}));
  timed.performance.timing.tf32 = context_.options.timing.tf32;
  timed.performance.kernels = std::move(found.kernels);
  timed.performance.own_share = found.own_share;
  compare_with_compiled(timed.performance);
  return Ran(std::move(timed.performance));
}

execute::Stage<task::Performance> TimingStage::run_by_calls(execute::Session& contestant,
                                                            execute::DeviceProcess& device) {
  MC_CHECK(laps_.empty());  // Once for each candidate.
  using Ran = std::variant<task::Performance, task::Outcome>;
  timing::CallOptions options;
  options.budget_s = context_.options.timing.budget_s;
  if (context_.options.timing.is_quick) options.make_quick();
  options.seed = random_seed();
  options.clock = context_.clock;
  std::optional<DeviceShare::Turn> turn(context_.device.take(subject_.use));
  lap("time.wait");
  MC_TRY(const auto before, device.used(), "time");
  MC_TRY(execute::Session * baseline, this->baseline(), "baseline");
  lap("time.start");
  timing::CallComparison comparison(subject_.judge, {contestant, device}, *baseline,
                                    context_.executor.limits(), options, context_.nvml);
  MC_TRY(EarlyOutcome decided, comparison.warm_up(), "warm-up");
  lap("time.warm_up");
  if (decided) return Ran(std::move(*decided));
  contestant.rest();
  turn.reset();
  turn.emplace(context_.device.take(DeviceShare::Use::kExclusive));
  lap("time.wait_alone");
  MC_TRY_VOID(find_device_speed(), "time");
  auto stage = comparison.run();
  lap("time.alone");
  turn.reset();
  if (!stage) return stage.error();
  end_baseline(/*may_serve_again=*/true);
  if (auto* outcome = std::get_if<task::Outcome>(&*stage)) return Ran(std::move(*outcome));
  auto timed = std::move(std::get<timing::CallComparison::Timed>(*stage));
  MC_TRY(const auto after, device.used(), "time");
  if (!context_.run_policy.operators.contains("*")) {
    auto forbidden = execute::forbidden_by(after, before.bytes_to_host, timed.calls);
    if (forbidden) return Ran(std::move(*forbidden));
  }
  if (timed.launches_own_least < context_.run_policy.own_launches_min) return Ran(lacks_launches());
  timed.performance.floor = timing::floor_of(*speed_, timed.work);
  timed.performance.timing.tf32 = context_.options.timing.tf32;
  compare_with_compiled(timed.performance);
  return Ran(std::move(timed.performance));
}

// What runs in a process may be a candidate's code, so it rests while the device is another's.
execute::Stage<timing::Timed> TimingStage::run_comparison(const Comparison& wanted) {
  using Compared = std::variant<timing::Timed, task::Outcome>;
  timing::RunOptions options = wanted.options;
  options.budget_s = context_.options.timing.budget_s;
  if (context_.options.timing.is_quick) options.make_quick();
  options.seed = random_seed();
  options.clock = context_.clock;
  timing::ComparisonRun comparison(subject_.judge, wanted.limits, options, context_.nvml);
  Processes processes;
  {
    std::optional<DeviceShare::Turn> turn;
    if (!wanted.is_slow) turn.emplace(context_.device.take(subject_.use));
    lap(wanted.name + ".wait");
    MC_TRY(auto started, wanted.start(), "start");
    if (auto* outcome = std::get_if<task::Outcome>(&started)) return Compared(std::move(*outcome));
    processes.candidate = std::move(std::get<SessionPointer>(started));
    MC_TRY(processes.baseline, baseline(), "baseline");
    lap(wanted.name + ".start");
    MC_TRY(EarlyOutcome decided, comparison.warm_up(*processes.candidate, *processes.baseline),
           "warm-up");
    lap(wanted.name + ".warm_up");
    if (decided) processes.candidate.reset();
    if (decided) return Compared(std::move(*decided));
    processes.candidate->rest();
    processes.baseline->rest();
  }
  std::optional<DeviceShare::Turn> turn(context_.device.take(DeviceShare::Use::kExclusive));
  lap(wanted.name + ".wait_alone");
  auto stage = run_alone(comparison, processes);
  lap(wanted.name + ".alone");
  turn.reset();
  // An ending context takes a tenth of a second, and would disturb who is alone.
  const auto together = context_.device.take(subject_.use);
  processes.candidate.reset();
  if (wanted.is_last) end_baseline(/*may_serve_again=*/stage.has_value());
  return stage;
}

execute::Stage<timing::Timed> TimingStage::run_alone(timing::ComparisonRun& comparison,
                                                     Processes& processes) {
  MC_CHECK(processes.candidate != nullptr && processes.baseline != nullptr);
  MC_TRY_VOID(find_device_speed(), "time");
  const double judge_s = context_.executor.limits().judge_s;
  timing::QuietRules quiet_rules;
  quiet_rules.clock = context_.clock;
  MC_TRY(const bool quiet, timing::await_quiet(quiet_rules, *speed_, subject_.judge, judge_s),
         "time");
  auto stage = comparison.run();
  processes.baseline->rest();
  auto* timed = stage ? std::get_if<timing::Timed>(&*stage) : nullptr;
  if (timed == nullptr) {
    processes.candidate.reset();
    return stage;
  }
  processes.candidate->rest();
  MC_TRY(const bool still_quiet, timing::is_quiet(quiet_rules, *speed_, subject_.judge, judge_s),
         "time");
  if (!still_quiet) processes.candidate.reset();  // With what it left there.
  if (!quiet || !still_quiet) timed->performance.timing.notes.emplace_back(kNotQuiet);
  return stage;
}

// The contestant that passed, at the main shape again; or another one, where that is gone.
execute::Stage<TimingStage::SessionPointer> TimingStage::ready(SessionPointer contestant) {
  using Ready = std::variant<SessionPointer, task::Outcome>;
  if (contestant != nullptr) {
    MC_TRY(auto rebuilt, context_.executor.rebuild(subject_.judge, *contestant), "rebuild");
    if (auto* outcome = std::get_if<task::Outcome>(&rebuilt)) return Ready(std::move(*outcome));
    return Ready(std::move(contestant));
  }
  MC_TRY(auto started,
         context_.executor.start_candidate(subject_.program, subject_.judge, context_.run_policy,
                                           random_seed()),
         "start");
  if (auto* outcome = std::get_if<task::Outcome>(&started)) return Ready(std::move(*outcome));
  auto& candidate = std::get<execute::Contestant>(started);
  MC_CHECK(candidate.device == nullptr);  // Else run_by_calls() times it.
  return Ready(std::make_unique<execute::Session>(std::move(candidate.session)));
}

// The process that is timed beside.
Result<execute::Session*> TimingStage::baseline() {
  if (baseline_) return &*baseline_;
  if (context_.options.timing.baseline == kItself) {
    MC_TRY(auto started, ready(nullptr), "baseline");
    if (std::holds_alternative<task::Outcome>(started)) {
      return Error{ErrorCode::kUnavailable, "the candidate does not start a second time"};
    }
    baseline_ = std::move(*std::get<SessionPointer>(started));
  } else {
    MC_TRY(baseline_, context_.executor.start_baseline(subject_.judge, options_of("")), "baseline");
  }
  return &*baseline_;
}

execute::BaselineOptions TimingStage::options_of(const std::string& compile_mode) const {
  return {subject_.task.code, compile_mode, context_.options.timing.tf32};
}

void TimingStage::end_baseline(bool may_serve_again) {
  if (baseline_ && may_serve_again && context_.options.timing.baseline != kItself) {
    context_.executor.give_back_baseline(std::move(*baseline_), subject_.task.code);
  }
  baseline_.reset();
}

// "GPU-…; 580.65.06", as keys of caches have it.
std::string TimingStage::device_and_driver() const {
  const std::string driver = context_.nvml == nullptr ? "" : context_.nvml->driver_version();
  return context_.machine.device->id + "; " + driver;
}

Status TimingStage::find_device_speed() {
  if (speed_) return ok();
  const std::string name =
      content_hash({kSpeedProtocol, device_and_driver()}).substr(0, 32) + ".json";
  MC_TRY(speed_,
         timing::find_device_speed(cache_directory() / "devices" / name, subject_.judge,
                                   context_.executor.limits().judge_s),
         "device speed");
  return ok();
}

// ---- Claims -------------------------------------------------------------------------------------

Result<TimingStage::EarlyOutcome> TimingStage::check_claim(timing::Timed& timed) {
  MC_CHECK(speed_.has_value());
  timed.performance.floor = timing::floor_of(*speed_, timed.work);
  return is_incredible(timed) ? time_again(timed) : EarlyOutcome();
}

// A claim under the physical floor is timed again in a fresh process, with other seeds and many
// more copies of what it returned.  It stands when it is as fast again and the traced kernels
// agree: some tasks need not touch all of their inputs.
Result<TimingStage::EarlyOutcome> TimingStage::time_again(timing::Timed& timed) {
  timing::RunOptions options;
  options.snapshots = kSnapshotsStrict;
  const auto start = [&] { return ready(nullptr); };
  MC_TRY(
      auto stage,
      run_comparison({"time.again", start, options, context_.executor.limits(), !lacks_compiled()}),
      "time");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return EarlyOutcome(std::move(*outcome));
  auto again = std::move(std::get<timing::Timed>(stage));
  again.performance.floor = timed.performance.floor;
  again.performance.timing.notes.push_back(
      "faster than the device can read all inputs and write all outputs: timed twice");
  timed = std::move(again);
  if (!is_incredible(timed) ||
      timing::trace_confirms(timed.claimed_us, timing::busy_call_us(timed.traced))) {
    return EarlyOutcome();
  }
  return EarlyOutcome(task::Illegal{
      "timing",
      {{"timing.under_floor",
        fmt::format("claims {:.3g} us a call, under the floor of {:.3g} us, while its kernels take "
                    "{:.3g} us",
                    timed.claimed_us, timed.performance.floor.time_us,
                    timing::busy_call_us(timed.traced)),
        {}}}});
}

timing::Provenance TimingStage::owners_of(const timing::Timed& timed) const {
  MC_CHECK(!timed.traced.empty());  // Else nobody would own anything.
  std::vector<std::string> libraries;
  std::vector<timing::OwnKernel> own;
  for (size_t i = 0; i < subject_.artifacts.size(); ++i) {
    const compile::Artifact& artifact = subject_.artifacts[i];
    libraries.push_back(execute::path_on_shelf(i, artifact.library).string());
    libraries.push_back(artifact.library.string());  // Where its view could not be closed.
    for (const compile::KernelResources& kernel : artifact.kernels) {
      own.push_back({kernel.kernel, kernel.spill_store_bytes + kernel.spill_load_bytes});
    }
  }
  return timing::find_owners(timed.traced, libraries, own);
}

// ---- torch.compile ------------------------------------------------------------------------------

BaselineKey TimingStage::compiled_key() const {
  return {subject_.task.code, context_.options.timing.compile_mode, device_and_driver(),
          context_.machine.pytorch.version,
          subject_.correctness.mode + " " + subject_.correctness.precision +
              (context_.options.timing.tf32 ? " tf32" : "")};
}

bool TimingStage::wants_compiled() const {
  return context_.options.timing.baseline == kEager &&
         !context_.options.timing.compile_mode.empty();
}

bool TimingStage::lacks_compiled() const {
  return wants_compiled() && !context_.baselines.find(compiled_key());
}

// A task that torch.compile fails on has no such baseline; that is no fault of the candidate's.
void TimingStage::compare_with_compiled(task::Performance& performance) {
  if (!wants_compiled()) return;
  const auto compiled = compiled_baseline();
  if (!compiled) {
    performance.timing.notes.push_back("torch.compile: " + compiled.error().message);
    return;
  }
  performance.speedup_compile = speedup_over(*compiled, performance.speedup_eager);
  performance.time_compile_us = compiled->time_us;
}

// Timed against eager, as the candidate is; the first call compiles, while warming up.
Result<CompiledBaseline> TimingStage::compiled_baseline() {
  const BaselineKey key = compiled_key();
  if (const auto known = context_.baselines.find(key)) return *known;
  using Started = std::variant<SessionPointer, task::Outcome>;
  const auto start = [&]() -> execute::Stage<SessionPointer> {
    MC_TRY(execute::Session session,
           context_.executor.start_baseline(subject_.judge, options_of(key.mode)), "baseline");
    return Started(std::make_unique<execute::Session>(std::move(session)));
  };
  timing::RunOptions options;
  options.is_trusted = true;
  execute::StageLimits limits = context_.executor.limits();
  limits.forward_s = limits.judge_s;
  const bool is_slow = key.mode == kDefaultMode;  // Other modes try many kernels on the device.
  MC_TRY(auto stage,
         run_comparison({"time.compile", start, options, limits, /*is_last=*/true, is_slow}),
         "torch.compile");
  if (std::holds_alternative<task::Outcome>(stage)) {
    return Error{ErrorCode::kUnavailable, "it does not run"};
  }
  const task::Performance& measured = std::get<timing::Timed>(stage).performance;
  const CompiledBaseline compiled{measured.speedup_eager, measured.time_us};
  MC_TRY_VOID(context_.baselines.keep(key, compiled), "torch.compile");
  return compiled;
}

void TimingStage::lap(const std::string& name) {
  const auto now = context_.clock.now();
  const std::chrono::duration<double, std::milli> taken = now - std::exchange(lap_start_, now);
  laps_.push_back({name, taken.count()});
  spdlog::debug("{}: {} took {:.0f} ms", subject_.task.name, name, taken.count());
}

}  // namespace mc::eval
