// SPDX-License-Identifier: Apache-2.0
//
// DeviceSpeed: the peak rates of a device, measured on it once
// (python/harness/timing/device_speed.py), and the least time of a task on it.
#ifndef MC_TIMING_DEVICE_SPEED_H_
#define MC_TIMING_DEVICE_SPEED_H_

#include <filesystem>
#include <string>

#include "core/result.h"
#include "execute/executor.h"
#include "task/performance.h"

namespace mc::timing {

struct DeviceSpeed {
  double bandwidth_gbs = 0;
  double fp32_tflops = 0;
  double half_tflops = 0;
};

// One call of a task.
struct Work {
  double bytes = 0;       // The bytes of inputs and outputs.
  double operations = 0;  // The operations of the reference.
  bool is_half = false;   // True if outputs are fp16 or bf16.
};

// The roofline time: the larger of bytes over bandwidth and operations over the peak for the dtype.
task::Floor floor_of(const DeviceSpeed& speed, const Work& work);

// The speed from `file`, or measured by the judge and stored there.  REQUIRES: nothing else uses
// the device.
Result<DeviceSpeed> find_device_speed(const std::filesystem::path& file, execute::Judge& judge,
                                      double limit_s);

}  // namespace mc::timing

#endif  // MC_TIMING_DEVICE_SPEED_H_
