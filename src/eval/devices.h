// SPDX-License-Identifier: Apache-2.0
//
// Devices: the devices of this machine, each with what evaluations on it share, or its CPU in the
// place of one.  A candidate is measured on one of them; a device on which no process gets a
// context any more is set aside, and its candidates go to the others.
//
//   Devices devices(std::move(scheduler), std::move(states), report);
//   auto verdict = devices.measure(key, [&](DeviceState& device) { return … });
#ifndef MC_EVAL_DEVICES_H_
#define MC_EVAL_DEVICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/judge_pool.h"
#include "eval/machine.h"
#include "eval/pipeline.h"
#include "eval/scheduler.h"
#include "execute/children.h"
#include "execute/executor.h"
#include "task/verdict.h"
#include "timing/nvml.h"

namespace mc::eval {

// One device, or the CPU, with the processes that are kept for it.
struct DeviceState {
  // `one` is the machine's, which outlives it; null for the CPU.  `limits` are those of every
  // device.  REQUIRES: `trusted` outlives it.
  DeviceState(const Device* one, DeviceSchedule its_schedule, execute::Zygotes zygotes,
              execute::Zygote* trusted, size_t num_spares, execute::StageLimits limits);

  const Device* const device;
  const DeviceSchedule schedule;
  const std::unique_ptr<execute::WarmPool> spare_judges;  // Null where none are kept.
  execute::Executor executor;
  JudgePool judges;
  const std::unique_ptr<timing::Nvml> nvml;  // Null where there is none.
};

class Devices {
 public:
  // `report` is given a line about each device that is set aside.  REQUIRES: the scheduler has
  // these devices, at least one.
  Devices(std::unique_ptr<Scheduler> scheduler, std::vector<std::unique_ptr<DeviceState>> devices,
          Progress report);

  // The verdict of one of them; of a candidate whose device is set aside over it, another one's.
  // `judge_key` is that of its judge (judge_key_of).
  task::Verdict measure(const std::string& judge_key,
                        const std::function<task::Verdict(DeviceState& device)>& measure_on);

  // A place on a device for work that is not timed.
  Scheduler::Hold take(const std::string& judge_key);
  DeviceState& at(const Scheduler::Hold& place) { return *devices_[place.device]; }

  size_t size() const { return devices_.size(); }
  // For stages that need no device.
  execute::Executor& executor() { return devices_.front()->executor; }

 private:
  bool is_set_aside(size_t index);

  const std::unique_ptr<Scheduler> scheduler_;
  const std::vector<std::unique_ptr<DeviceState>> devices_;
  const Progress report_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICES_H_
