// SPDX-License-Identifier: Apache-2.0
#include "eval/timing_stage.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "compile/toolchain.h"
#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/log.h"
#include "eval/machine.h"
#include "eval/memory_need.h"
#include "execute/children.h"
#include "legality/kernels.h"
#include "legality/policy.h"
#include "timing/nvml.h"

namespace mc::eval {
namespace {

constexpr const char* kSpeedProtocol = "speed/3";
constexpr const char* kItself = "candidate";  // The baseline that is the candidate itself.
constexpr const char* kEager = "eager";
constexpr const char* kDefaultMode = "default";  // The mode of torch.compile.

task::Outcome lacks_launches() {
  return task::Illegal{
      "run", {{"run.own_launch", "a timed call launched no kernel of the candidate's own", {}}}};
}

}  // namespace

execute::Stage<task::Performance> TimingStage::run(execute::Session& candidate,
                                                   execute::DeviceProcess& device) {
  MC_CHECK(stage_times_.empty());  // Called once for each candidate.
  using Ran = std::variant<task::Performance, task::Outcome>;
  MC_TRY(const auto before, device.used(), "time");
  std::optional<Scheduler::Hold> turn(context_.device.turn(subject_.use));
  MC_TRY(const timing::TimedProcess other, baseline(), "baseline");
  turn.reset();
  MC_TRY(auto stage, compare({"time", {&candidate, &device}, other}), "time");
  MC_TRY_VOID(end_baseline(), "baseline");
  auto* outcome = std::get_if<task::Outcome>(&stage);
  const auto after = device.used();
  if (after && !context_.run_policy.operators.contains("*")) {
    // A forbidden kernel does not run, so it is the reason, and not the failure that follows.
    auto forbidden = outcome != nullptr ? execute::forbidden_by(*after, after->bytes_to_host, 1)
                                        : execute::forbidden_by(*after, before.bytes_to_host,
                                                                std::get<Timed>(stage).calls);
    if (forbidden) return Ran(std::move(*forbidden));
  }
  if (outcome != nullptr) return Ran(std::move(*outcome));
  if (!after) return after.error();
  auto timed = std::move(std::get<Timed>(stage));
  if (timed.launches_own_least < context_.run_policy.own_launches_min) return Ran(lacks_launches());
  timing::Provenance found = owners_of(timed);
  auto findings = legality::check_kernels(context_.policy, found.kernels, found.own_share);
  if (!findings.empty()) return Ran(task::Outcome(task::Illegal{"run", std::move(findings)}));
  task::Performance& performance = timed.performance;
  performance.floor = timing::floor_of(*speed_, timed.work);
  performance.timing.tf32 = context_.options.timing.tf32;
  performance.kernels = std::move(found.kernels);
  performance.own_share = found.own_share;
  compare_with_compiled(performance);
  return Ran(std::move(performance));
}

execute::Stage<TimingStage::Timed> TimingStage::compare(const Processes& processes) {
  using Compared = std::variant<Timed, task::Outcome>;
  const auto& [name, own, other, is_slow] = processes;
  timing::CallOptions options;
  options.budget_s = context_.options.timing.budget_s;
  if (context_.options.timing.is_quick) options.make_quick();
  options.seed = random_seed();
  options.clock = context_.clock;
  options.tf32 = context_.options.timing.tf32;
  options.batch_bytes_max = batch_bytes_max(context_.device.capacity());
  if (subject_.artifacts.empty()) options.first_s = context_.executor.limits().load_s;
  timing::CallComparison comparison(subject_.judge, own, other, context_.executor.limits(), options,
                                    context_.nvml);
  end_stage(name + ".start");
  std::optional<Scheduler::Hold> turn;
  if (!is_slow) turn.emplace(context_.device.turn(subject_.use));
  const auto pause = [&] {
    if (!turn || subject_.use == Schedule::Use::kExclusive ||
        !context_.device.is_exclusive_wanted())
      return;
    turn.reset();
    turn.emplace(context_.device.turn(subject_.use));
  };
  end_stage(name + ".wait");
  MC_TRY(EarlyOutcome decided, comparison.warm_up(pause), "warm-up");
  end_stage(name + ".warm_up");
  if (decided) return Compared(std::move(*decided));
  turn.reset();
  turn.emplace(context_.device.turn(Schedule::Use::kExclusive));
  end_stage(name + ".wait_alone");
  MC_TRY_VOID(find_device_speed(), "time");
  MC_TRY(decided, comparison.run(), "rounds");
  end_stage(name + ".alone");
  turn.reset();
  if (decided) return Compared(std::move(*decided));
  turn.emplace(context_.device.turn(subject_.use));
  auto stage = comparison.finish(pause);
  end_stage(name + ".check");
  return stage;
}

// The other side of the comparison: the judge's own reference, or a second process of the
// candidate.
Result<timing::TimedProcess> TimingStage::baseline() {
  MC_CHECK(!again_);
  if (context_.options.timing.baseline != kItself) return timing::TimedProcess{};
  MC_TRY(auto started,
         context_.executor.start_candidate(subject_.program, subject_.judge, context_.run_policy,
                                           random_seed()),
         "baseline");
  auto* again = std::get_if<execute::CandidateProcess>(&started);
  if (again == nullptr) {
    return Error{ErrorCode::kUnavailable, "the candidate does not start a second time"};
  }
  again_ = std::move(*again);
  return timing::TimedProcess{&again_->session, again_->device.get()};
}

Status TimingStage::end_baseline() {
  if (!again_) return ok();
  auto device = std::move(again_->device);
  again_.reset();
  return context_.executor.give_back_device(std::move(device));
}

// The part of cache keys for the device and its driver: "GPU-…; 580.65.06".
std::string TimingStage::device_and_driver() const {
  const std::string driver = context_.nvml == nullptr ? "" : context_.nvml->driver_version();
  return context_.compute_device->id + "; " + driver;
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

timing::Provenance TimingStage::owners_of(const Timed& timed) const {
  std::vector<timing::OwnKernel> own;
  for (const compile::Artifact& artifact : subject_.artifacts) {
    for (const compile::KernelResources& kernel : artifact.kernels) {
      own.push_back({kernel.kernel, kernel.spill_store_bytes + kernel.spill_load_bytes});
    }
  }
  return timing::find_owners(timed.kernels, own);
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

// A task that torch.compile fails on has no such baseline; that is not the candidate's fault.
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

// Measures torch.compile against eager, as the candidate is measured; it compiles in the first call
// of the warm-up.  Baselines decide no outcome.
Result<CompiledBaseline> TimingStage::compiled_baseline() {
  const BaselineKey key = compiled_key();
  if (const auto known = context_.baselines.find(key)) return *known;
  std::optional<Scheduler::Hold> turn(context_.device.turn(subject_.use));
  MC_TRY(execute::Session session,
         context_.executor.start_compiled(
             subject_.judge, {subject_.task.code, key.mode, context_.options.timing.tf32}),
         "baseline");
  turn.reset();
  const bool is_slow = key.mode == kDefaultMode;  // Other modes try many kernels on the device.
  MC_TRY(auto stage, compare({"time.compile", {&session, nullptr}, {}, is_slow}), "torch.compile");
  const task::Performance& measured = std::get<Timed>(stage).performance;
  const CompiledBaseline compiled{measured.speedup_eager, measured.time_us};
  MC_TRY_VOID(context_.baselines.keep(key, compiled), "torch.compile");
  return compiled;
}

void TimingStage::end_stage(const std::string& name) {
  const auto now = context_.clock.now();
  const std::chrono::duration<double, std::milli> taken = now - std::exchange(lap_start_, now);
  stage_times_.push_back({name, taken.count()});
  log_debug(fmt::format("{}: {} took {:.0f} ms", subject_.task.name, name, taken.count()));
}

}  // namespace mc::eval
