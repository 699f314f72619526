// SPDX-License-Identifier: Apache-2.0
#include "timing/charges.h"

#include <algorithm>

namespace mc::timing {
namespace {

constexpr double kDeviceShareMin = 0.2;  // Of a call's time, whatever the gap between launches.
constexpr double kCallUsMin = 0.1;

double overhead_of(const BurstReading& burst) { return burst.bracket_us - burst.events_us; }

}  // namespace

void Charges::note_baseline(const BurstReading& burst) {
  overhead_us_ = std::min(overhead_us_, overhead_of(burst));
  if (burst.looked_us > 0) {
    const double look_us = burst.looked_us - burst.events_us;
    look_overheads_us_.insert(std::ranges::upper_bound(look_overheads_us_, look_us), look_us);
  }
}

double Charges::look_overhead_us() const {
  return look_overheads_us_.empty() ? std::numeric_limits<double>::infinity()
                                    : look_overheads_us_[look_overheads_us_.size() / 2];
}

double Charges::clock_excess_us(const BurstReading& burst) const {
  return overhead_of(burst) - overhead_us_;
}

bool Charges::confirms(const BurstReading& burst) const {
  const double slack_us = rules_.clock_slack_us + rules_.clock_slack_share * burst.events_us;
  return burst.is_trusted || clock_excess_us(burst) <= slack_us;
}

double Charges::burst_us(const BurstReading& burst) const {
  return confirms(burst) ? burst.events_us : burst.bracket_us - overhead_us_;
}

double Charges::look_excess_us(const BurstReading& burst) const {
  return burst.looked_us - look_overhead_us() - burst_us(burst);
}

bool Charges::look_confirms(const BurstReading& burst) const {
  const double slack_us =
      burst.queue_us > 0 ? rules_.look_slack_us
                         : rules_.look_slack_open_us + rules_.look_slack_open_call_us * burst.calls;
  return burst.is_trusted ||
         look_excess_us(burst) <= slack_us + rules_.clock_slack_share * burst_us(burst);
}

double Charges::host_us(const BurstReading& burst) const {
  const double host_us = burst.queue_us / burst.calls;
  const double free_us = rules_.host_us_free + rules_.host_us_free_launch * burst.launches;
  return host_us > std::max(free_us, burst_us(burst) / burst.calls) ? host_us : 0;
}

LaunchGap Charges::gap_of_baseline(const TracedCall& traced) const {
  return gap_up_to(rules_.gap_us_max_baseline, traced);
}

LaunchGap Charges::gap(const TracedCall& traced, const LaunchGap& baseline) const {
  return gap_up_to(std::max(rules_.gap_us_max, baseline.us + rules_.gap_us_above), traced);
}

LaunchGap Charges::gap_up_to(double most_us, const TracedCall& traced) const {
  if (!traced.is_one_stream || traced.launches < 1) return {rules_.gap_us, traced.launches, false};
  const double gap_us = (traced.call_us - traced.kernel_us) / traced.launches;
  const double believed_us = std::clamp(gap_us, rules_.gap_us_min, most_us);
  return {believed_us, traced.launches, believed_us == gap_us};
}

double Charges::call_us(const BurstReading& burst, double gap_us, Until until) const {
  const double late_us = until == Until::kCopied ? std::max(look_excess_us(burst), 0.0) : 0;
  const double call_us = (burst_us(burst) + late_us) / burst.calls;
  const double device_us = std::max(call_us - gap_us, kDeviceShareMin * call_us);
  return std::max(device_us, host_us(burst));
}

int choose_calls(const BurstLimits& limits, const CallCost& call) {
  const double wanted = std::min(limits.burst_us / std::max(call.us, kCallUsMin),
                                 limits.launches_max / std::max(call.launches, 1.0));
  return std::clamp(static_cast<int>(wanted), 1, std::clamp(call.calls_fit, 1, limits.calls_max));
}

}  // namespace mc::timing
