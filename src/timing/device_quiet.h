// SPDX-License-Identifier: Apache-2.0
//
// Whether the judge has the device for itself.  Processes that share a device take turns of a few
// milliseconds on it; so memory that is filled for a dozen of these takes twice as long as it can
// where one other process keeps the device busy, whoever's it is.
#ifndef MC_TIMING_DEVICE_QUIET_H_
#define MC_TIMING_DEVICE_QUIET_H_

#include "core/clock.h"
#include "core/result.h"
#include "execute/executor.h"
#include "timing/device_speed.h"

namespace mc::timing {

struct QuietRules {
  double fill_s = 0.02;      // On a quiet device.
  double share_min = 0.75;   // Of the speed that the device is known to have.
  double wait_s = 10;        // For what somebody left there,
  double interval_s = 0.05;  // with another look after each of these.
  Clock clock{};
};

// `judge_s` is the limit for each answer.
Result<bool> is_quiet(const QuietRules& rules, const DeviceSpeed& speed, execute::Judge& judge,
                      double judge_s);

// Waits until it is, or for `wait_s`; whether it is then.
Result<bool> await_quiet(const QuietRules& rules, const DeviceSpeed& speed, execute::Judge& judge,
                         double judge_s);

}  // namespace mc::timing

#endif  // MC_TIMING_DEVICE_QUIET_H_
