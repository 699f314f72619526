// SPDX-License-Identifier: Apache-2.0
#include "timing/device_quiet.h"

#include <cstdint>

#include "core/check.h"

namespace mc::timing {
Result<bool> is_quiet(const QuietRules& rules, const DeviceSpeed& speed, execute::Judge& judge,
                      double judge_s) {
  MC_CHECK(rules.fill_s > 0 && speed.fill_gbs > 0);
  const auto bytes = static_cast<int64_t>(rules.fill_s * speed.fill_gbs * 1e9);
  MC_TRY(const auto took, judge.ask(worker::JudgeTimeFillQuestion{bytes}, judge_s), "fill");
  const double gbs = static_cast<double>(took.said.bytes) / took.said.seconds / 1e9;
  return gbs >= rules.share_min * speed.fill_gbs;
}

Result<bool> await_quiet(const QuietRules& rules, const DeviceSpeed& speed, execute::Judge& judge,
                         double judge_s) {
  const auto deadline = rules.clock.in(rules.wait_s);
  for (;;) {
    MC_TRY(const bool quiet, is_quiet(rules, speed, judge, judge_s), "quiet");
    if (quiet || rules.clock.now() >= deadline) return quiet;
    rules.clock.sleep(Clock::Seconds(rules.interval_s));
  }
}

}  // namespace mc::timing
