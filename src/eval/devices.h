// SPDX-License-Identifier: Apache-2.0
//
// Devices: the devices of this machine, each with the state that evaluations on it share; on the
// CPU backend the CPU takes the place of a device.  A candidate is measured on one device.  A
// device on which processes can no longer create a context is set aside, and its candidates move to
// the other devices.
#ifndef MC_EVAL_DEVICES_H_
#define MC_EVAL_DEVICES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/judge_pool.h"
#include "eval/machine.h"
#include "eval/options.h"
#include "eval/scheduler.h"
#include "execute/children.h"
#include "execute/executor.h"
#include "task/verdict.h"
#include "timing/nvml.h"

namespace mc::eval {

// One device, or the CPU, with its pool of processes.
struct DeviceState {
  // `one` is a device of the machine, which outlives this state; null for the CPU.  `limits` are
  // those of every device.  REQUIRES: `trusted` outlives this state.
  DeviceState(const Device* one, DeviceSchedule its_schedule, execute::Zygotes zygotes,
              execute::Zygote* trusted, size_t num_warm, execute::StageLimits limits);

  const Device* const device;
  const DeviceSchedule schedule;
  const std::unique_ptr<execute::WarmPool> warm_judges;  // Null where no processes are kept ready.
  execute::Executor executor;
  JudgePool judges;
  const std::unique_ptr<timing::Nvml> nvml;  // Null where NVML is not available.
};

class Devices {
 public:
  // `report` is called with a line about each device that is set aside.  REQUIRES: the scheduler
  // has these devices, at least one.
  Devices(std::unique_ptr<Scheduler> scheduler, std::vector<std::unique_ptr<DeviceState>> devices,
          Progress report);

  // The verdict from one of the devices.  Where that device is set aside because of the failure,
  // another device measures the candidate once more.  `judge_key` is that of its judge
  // (judge_key_of).
  task::Verdict measure(const std::string& judge_key,
                        const std::function<task::Verdict(DeviceState& device)>& measure_on);

  // Assigns a device for work that is not timed.
  Scheduler::Hold take(const std::string& judge_key);
  DeviceState& at(const Scheduler::Hold& hold) { return *devices_[hold.device]; }

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
