// SPDX-License-Identifier: Apache-2.0
#include "timing/series.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "timing/statistics.h"

namespace mc::timing {
namespace {

constexpr double kHardlyWider = 1.1;

// By the events alone.
std::vector<double> raw_calls_us(const Series& series) {
  std::vector<double> calls_us;
  for (const BurstReading& burst : series.samples)
    calls_us.push_back(burst.events_us / burst.calls);
  return calls_us;
}

TracedCall traced_call(const Series& series) {
  TracedCall traced{estimate_median(raw_calls_us(series)).median, traced_call_us(series.traced)};
  std::set<uint64_t> streams;
  int64_t launches = 0;
  int calls = 0;
  for (const TracedBurst& burst : series.traced) {
    calls += burst.calls;
    for (const TracedKernel& kernel : burst.kernels) {
      launches += kernel.launches;
      streams.insert(kernel.stream);
    }
  }
  traced.launches = calls == 0 ? 0 : static_cast<double>(launches) / calls;
  traced.is_one_stream = streams.size() <= 1;
  return traced;
}

std::vector<double> calls_us(const Charges& charges, const Series& series, const LaunchGap& gap) {
  const Charges::Until until = charges.look_confirms(soonest_seen(charges, series))
                                   ? Charges::Until::kDone
                                   : Charges::Until::kCopied;
  std::vector<double> calls_us;
  for (const BurstReading& burst : series.samples)
    calls_us.push_back(charges.call_us(burst, gap.us, until));
  return calls_us;
}

// As a share of such a time.
double spread_at(const SpreadRules& rules, const LaunchGap& gap, double time_us) {
  const double gaps_left = std::max(gap.launches - (gap.is_measured ? 1 : 0), 0.0);
  return std::hypot(rules.share, rules.gap_measured_us / time_us,
                    gaps_left * rules.gap_us / time_us);
}

std::vector<double> ratios_of(const std::vector<double>& times,
                              const std::vector<double>& times_baseline) {
  std::vector<double> ratios;
  std::ranges::transform(times_baseline, times, std::back_inserter(ratios), std::divides<>());
  return ratios;
}

task::Estimate scaled(const task::Estimate& estimate, double factor) {
  return {estimate.median * factor, estimate.low * factor, estimate.high * factor};
}

// A process that is fast only while nobody traces it is as fast as it is in its traced bursts.
Comparison charged_by_trace(Comparison found, const Series& own) {
  if (trace_confirms({}, found.claimed_us, own)) return found;
  const double factor = busy_call_us(own.traced) / found.claimed_us;
  found.time_us = scaled(found.time_us, factor);
  found.speedup = scaled(found.speedup, 1 / factor);
  return found;
}

double width(const task::Estimate& estimate) { return std::log(estimate.high / estimate.low); }

}  // namespace

Comparison compare(const Charges& charges, const SpreadRules& spread, const Series& own,
                   const Series& baseline) {
  const LaunchGap gap_baseline = charges.gap_of_baseline(traced_call(baseline));
  const LaunchGap gap = charges.gap(traced_call(own), gap_baseline);
  const std::vector<double> times = calls_us(charges, own, gap);
  const std::vector<double> times_baseline = calls_us(charges, baseline, gap_baseline);
  const std::vector<double> ratios = ratios_of(times, times_baseline);
  const task::Estimate time = estimate_median(times);
  const task::Estimate time_baseline = estimate_median(times_baseline);
  const double here = spread_at(spread, gap, time.median);
  const double there = spread_at(spread, gap_baseline, time_baseline.median);
  return charged_by_trace({widened(time, here), widened(time_baseline, there),
                           widened(estimate_median(ratios), std::hypot(here, there)), gap.us,
                           gap_baseline.us, time.median},
                          own);
}

bool trace_confirms(const TraceRules& rules, double claimed_us, const Series& own) {
  return busy_call_us(own.traced) <= rules.tolerance * claimed_us + rules.slack_us;
}

bool is_precise(const SpreadRules& spread, const Series& own, const Series& baseline) {
  const std::vector<double> times = raw_calls_us(own);
  const std::vector<double> times_baseline = raw_calls_us(baseline);
  // The least that remains unseen: gaps inside a call, or one that is not believed, add to it.
  const LaunchGap one{.us = 0, .launches = 1, .is_measured = true};
  const double unseen = std::hypot(spread_at(spread, one, estimate_median(times).median),
                                   spread_at(spread, one, estimate_median(times_baseline).median));
  const task::Estimate found = estimate_median(ratios_of(times, times_baseline));
  const task::Estimate exact{found.median, found.median, found.median};
  return width(widened(found, unseen)) < kHardlyWider * width(widened(exact, unseen));
}

const BurstReading& soonest_seen(const Charges& charges, const Series& series) {
  std::vector<const BurstReading*> bursts;
  for (const BurstReading& burst : series.samples) bursts.push_back(&burst);
  std::ranges::stable_sort(bursts, {},
                           [&](const BurstReading* burst) { return charges.call_us(*burst, 0); });
  bursts.resize((bursts.size() + 1) / 2);
  return **std::ranges::min_element(
      bursts, {}, [&](const BurstReading* burst) { return charges.look_excess_us(*burst); });
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
  if (!charges.look_confirms(soonest_seen(charges, series))) {
    notes.emplace_back(
        "outputs could not be copied when all was said to be done; the clock until then counts");
  }
  if (std::ranges::any_of(series.samples,
                          [&](const BurstReading& burst) { return charges.host_us(burst) > 0; })) {
    notes.emplace_back("forward keeps the host busy for longer than it takes to launch");
  }
  return notes;
}

}  // namespace mc::timing
