// SPDX-License-Identifier: Apache-2.0
#include "execute/series.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "execute/statistics.h"

namespace mc::execute {
namespace {

double gap_us(const Charges& charges, const Series& series) {
  std::vector<double> calls_us;
  for (const BurstReading& burst : series.samples)
    calls_us.push_back(burst.events_us / burst.calls);
  TracedCall traced{estimate_median(calls_us).median, 0, 0, true};
  for (const TracedKernel& kernel : series.kernels) {
    traced.kernel_us += kernel.time_us / series.calls_traced;
    traced.launches += static_cast<double>(kernel.launches) / series.calls_traced;
    traced.is_one_stream &= kernel.stream == series.kernels.front().stream;
  }
  return charges.gap_us(traced);
}

std::vector<double> calls_us(const Charges& charges, const Series& series) {
  const double gap = gap_us(charges, series);
  std::vector<double> calls_us;
  for (const BurstReading& burst : series.samples) calls_us.push_back(charges.call_us(burst, gap));
  return calls_us;
}

double spread_at(const SpreadRules& rules, double time_us) {
  return std::hypot(rules.share, rules.gap_us / time_us);
}

}  // namespace

Comparison compare(const Charges& charges, const SpreadRules& spread, const Series& own,
                   const Series& baseline) {
  const std::vector<double> times = calls_us(charges, own);
  const std::vector<double> times_baseline = calls_us(charges, baseline);
  std::vector<double> ratios;
  std::ranges::transform(times_baseline, times, std::back_inserter(ratios), std::divides<>());
  const task::Estimate time = estimate_median(times);
  const task::Estimate time_baseline = estimate_median(times_baseline);
  const double here = spread_at(spread, time.median);
  const double there = spread_at(spread, time_baseline.median);
  return {widened(time, here), widened(time_baseline, there),
          widened(estimate_median(ratios), std::hypot(here, there))};
}

std::vector<std::string> notes_on(const Charges& charges, const Series& series) {
  std::vector<std::string> notes;
  const auto charged = std::ranges::count_if(
      series.samples, [&](const BurstReading& burst) { return !charges.confirms(burst); });
  if (charged > 0) {
    notes.push_back(fmt::format(
        "{} bursts took longer than the device's events say, and are charged by the clock",
        charged));
  }
  if (std::ranges::any_of(series.samples,
                          [&](const BurstReading& burst) { return charges.host_us(burst) > 0; })) {
    notes.emplace_back("forward keeps the host busy for longer than it takes to launch");
  }
  return notes;
}

}  // namespace mc::execute
