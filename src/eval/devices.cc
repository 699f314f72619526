// SPDX-License-Identifier: Apache-2.0
#include "eval/devices.h"

#include <utility>

#include <fmt/format.h>

#include "core/cancel.h"

namespace mc::eval {
namespace {

// Null where they gain nothing.
std::unique_ptr<execute::WarmPool> spare_judges(size_t num_spares, execute::Zygote* zygote,
                                                const execute::ChildLimits& limits,
                                                DeviceShare& share) {
  if (limits.devices.empty() || zygote == nullptr) return nullptr;
  return std::make_unique<execute::WarmPool>(num_spares, [zygote, &share, limits] {
    const auto turn = share.take(DeviceShare::Use::kShared);
    return zygote->spawn(execute::Role::kJudge, limits);
  });
}

execute::StageLimits limits_on(const Device* device, execute::StageLimits limits) {
  limits.has_device_process = device != nullptr;
  if (device == nullptr) return limits;
  limits.child.devices = device->nodes;
  limits.child.environment = device->environment;
  return limits;
}

}  // namespace

DeviceState::DeviceState(const Device* one, execute::Zygotes zygotes, execute::Zygote* trusted,
                         size_t num_spares, execute::StageLimits limits,
                         std::optional<DeviceLock> lock)
    : device(one),
      share(std::move(lock)),
      memory(one == nullptr ? 0 : one->bytes),
      spare_judges(eval::spare_judges(num_spares, trusted, limits_on(one, limits).child, share)),
      executor(std::move(zygotes), spare_judges.get(), limits_on(one, limits)),
      judges(one == nullptr ? JudgePool::kOnCpu : JudgePool::kOnDevice),
      nvml(one == nullptr ? nullptr : timing::Nvml::open(one->id)) {}

Devices::Devices(std::vector<std::unique_ptr<DeviceState>> devices, Progress report)
    : devices_(std::move(devices)), queue_(devices_.size()), report_(std::move(report)) {}

DeviceQueue::Place Devices::take(const std::string& judge_key) {
  return queue_.take([&](size_t index) { return devices_[index]->judges.has(judge_key); });
}

task::Verdict Devices::measure(
    const std::string& judge_key,
    const std::function<task::Verdict(DeviceState& device)>& measure_on) {
  for (bool has_moved = false;; has_moved = true) {
    const DeviceQueue::Place place = take(judge_key);
    task::Verdict verdict = measure_on(at(place));
    const bool is_infra = std::holds_alternative<task::Infra>(verdict.outcome);
    // One that may have broken two devices gets no third.
    if (!is_infra || is_cancelled() || !is_set_aside(place.index()) || has_moved) return verdict;
  }
}

// Sets it aside where it should be.  Every device but the last one is asked; the last one has no
// other that could take its candidates.
bool Devices::is_set_aside(size_t index) {
  if (queue_.is_set_aside(index)) return true;
  if (queue_.num_left() == 1) return false;
  DeviceState& state = *devices_[index];
  const auto turn = state.share.take(DeviceShare::Use::kShared);
  const Status probed = state.executor.probe_device();
  if (probed) return false;
  if (queue_.set_aside(index)) {
    report_(
        fmt::format("device {} is set aside, since no process gets a context on it ({}); {} "
                    "left; restart to try it again",
                    state.device->id, probed.error().message, queue_.num_left()));
  }
  return queue_.is_set_aside(index);
}

}  // namespace mc::eval
