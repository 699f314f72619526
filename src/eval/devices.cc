// SPDX-License-Identifier: Apache-2.0
#include "eval/devices.h"

#include <utility>

#include <fmt/format.h>

#include "core/cancel.h"
#include "core/check.h"

namespace mc::eval {
namespace {

// Null where ready judges would gain nothing.
std::unique_ptr<execute::WarmPool> warm_judges(size_t num_warm, execute::Zygote* zygote,
                                               const execute::ChildLimits& limits,
                                               DeviceSchedule schedule) {
  if (limits.devices.empty() || zygote == nullptr) return nullptr;
  return std::make_unique<execute::WarmPool>(num_warm, [zygote, schedule, limits] {
    const auto turn = schedule.turn(Schedule::Use::kShared);
    return zygote->spawn(execute::Role::kJudge, limits);
  });
}

execute::StageLimits limits_on(const Device* device, execute::StageLimits limits) {
  if (device == nullptr) return limits;
  limits.child.devices = device->nodes;
  limits.child.environment = device->environment;
  return limits;
}

}  // namespace

DeviceState::DeviceState(const Device* one, DeviceSchedule its_schedule, execute::Zygotes zygotes,
                         execute::Zygote* trusted, size_t num_warm, execute::StageLimits limits)
    : device(one),
      schedule(its_schedule),
      warm_judges(eval::warm_judges(num_warm, trusted, limits_on(one, limits).child, schedule)),
      executor(std::move(zygotes), warm_judges.get(), limits_on(one, limits)),
      judges(one == nullptr ? JudgePool::kOnCpu : JudgePool::kOnDevice),
      nvml(one == nullptr ? nullptr : timing::Nvml::open(one->id)) {}

Devices::Devices(std::unique_ptr<Scheduler> scheduler,
                 std::vector<std::unique_ptr<DeviceState>> devices, Progress report)
    : scheduler_(std::move(scheduler)), devices_(std::move(devices)), report_(std::move(report)) {
  MC_CHECK(scheduler_ != nullptr && !devices_.empty() && report_ != nullptr);
}

Scheduler::Hold Devices::take(const std::string& judge_key) {
  std::vector<bool> is_warm;
  for (const auto& device : devices_) is_warm.push_back(device->judges.has(judge_key));
  return scheduler_->take({.is_warm = std::move(is_warm)});
}

task::Verdict Devices::measure(
    const std::string& judge_key,
    const std::function<task::Verdict(DeviceState& device)>& measure_on) {
  for (bool has_moved = false;; has_moved = true) {
    const Scheduler::Hold hold = take(judge_key);
    task::Verdict verdict = measure_on(at(hold));
    const bool is_infra = std::holds_alternative<task::Infra>(verdict.outcome);
    // A candidate that may have broken two devices is not measured on a third one.
    if (!is_infra || is_cancelled() || !is_set_aside(hold.device) || has_moved) return verdict;
  }
}

// Sets the device aside where processes can no longer create a context on it.  The last device is
// not probed, since no other one could take its candidates.
bool Devices::is_set_aside(size_t index) {
  const auto is_dead = [index](Schedule& now) { return now.is_set_aside(index); };
  const auto num_left = [](Schedule& now) { return now.num_left(); };
  if (scheduler_->with_schedule(is_dead)) return true;
  if (scheduler_->with_schedule(num_left) == 1) return false;
  MC_CHECK(index < devices_.size());
  DeviceState& state = *devices_[index];
  const auto turn = state.schedule.turn(Schedule::Use::kShared);
  const Status probed = state.executor.probe_device();
  if (probed) return false;
  if (scheduler_->with_schedule([index](Schedule& now) { return now.set_aside(index); })) {
    report_(
        fmt::format("device {} is set aside, since no process gets a context on it ({}); {} "
                    "left; restart to try it again",
                    state.device->id, probed.error().message, scheduler_->with_schedule(num_left)));
  }
  return scheduler_->with_schedule(is_dead);
}

}  // namespace mc::eval
