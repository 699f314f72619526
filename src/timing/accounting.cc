// SPDX-License-Identifier: Apache-2.0
#include "timing/accounting.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/check.h"
#include "timing/statistics.h"

namespace mc::timing {
namespace {

constexpr double kCallUsMin = 0.1;  // Of a call's time, whatever the clock says.
// A process that was not enqueued takes so long to tell where outputs lie: in all, and a call.
constexpr double kTellUs = 1000;
constexpr double kTellCallUs = 10;
// What an honest process's promptest copy may come later than the baseline's median.
constexpr double kSeenTolerance = 1.005;
constexpr double kSeenSlackUs = 100;
// Tracing makes kernels of very many blocks up to 5 % longer.
constexpr double kTraceTolerance = 1.1;
constexpr double kTraceSlackUs = 1;
// Standard deviations between processes, which repetition inside one cannot see: of a call's time
// as a share, and of the gaps between its launches.
constexpr double kSpreadShare = 0.0025;
constexpr double kSpreadUs = 0.1;

// What the clock shows beside the device's work.
struct Overhead {
  double done_us = 0;
  double copied_us = 0;
};

double median_of(const std::vector<double>& values) {
  return values.empty() ? 0 : estimate_median(values).median;
}

Overhead overhead_of(const Samples& baseline) {
  std::vector<double> done_us;
  std::vector<double> copied_us;
  for (const BatchSample& batch : baseline.batches) {
    done_us.push_back(batch.done_us - batch.events_us);
    if (batch.copied_us > 0) copied_us.push_back(batch.copied_us - batch.events_us);
  }
  return {median_of(done_us), median_of(copied_us)};
}

std::vector<double> calls_us(const Samples& samples, const Overhead& overhead) {
  std::vector<double> calls_us;
  for (const BatchSample& batch : samples.batches) {
    calls_us.push_back(std::max((batch.done_us - overhead.done_us) / batch.calls, kCallUsMin));
  }
  return calls_us;
}

// A bound of a call's time: outputs that were right when they were copied had been computed.  What
// else happens on a machine delays a judge and never hastens it, so the promptest copy counts.
double seen_call_us(const Samples& samples, const Overhead& overhead) {
  double least_us = std::numeric_limits<double>::infinity();
  for (const BatchSample& batch : samples.batches) {
    if (batch.copied_us == 0) return 0;
    least_us = std::min(least_us, (batch.copied_us - overhead.copied_us) / batch.calls);
  }
  return least_us;
}

// By which outputs may be copied later than a call is said to take: a process that is not enqueued
// tells where they lie while the clock runs.
double slack_call_us(const Samples& samples) {
  const int calls = samples.batches.front().calls;
  const double tell_us = samples.is_enqueued ? 0 : kTellUs + kTellCallUs * calls;
  return (kSeenSlackUs + tell_us) / calls;
}

task::Estimate scaled(const task::Estimate& estimate, double factor) {
  return {estimate.median * factor, estimate.low * factor, estimate.high * factor};
}

double spread_at(double time_us) { return std::hypot(kSpreadShare, kSpreadUs / time_us); }

// What counts where it is more than what was claimed, and why.
struct Bound {
  double call_us = 0;
  std::string note;
};

Bound bound_of(const Samples& own, const Overhead& overhead, double claimed_us) {
  Bound bound{claimed_us, ""};
  const auto raise = [&](double call_us, const std::string& note) {
    if (call_us > bound.call_us) bound = {call_us, note};
  };
  const double seen_us = seen_call_us(own, overhead);
  if (seen_us > kSeenTolerance * claimed_us + slack_call_us(own)) {
    raise(seen_us,
          "outputs could not be copied when all was said to be done; the time until then counts");
  }
  raise(own.least_us, "it was slower when its batches were measured out, which counts by half");
  const double busy_us = busy_call_us(own.traced);
  if (!trace_confirms(claimed_us, busy_us)) {
    raise(busy_us, fmt::format("its kernels took {:.3g} us a call where they were traced, which "
                               "counts; without being traced {:.3g} us",
                               busy_us, claimed_us));
  }
  return bound;
}

}  // namespace

bool trace_confirms(double claimed_us, double busy_us) {
  return busy_us <= kTraceTolerance * claimed_us + kTraceSlackUs;
}

Comparison compare(const Samples& own, const Samples& baseline) {
  MC_CHECK(!own.batches.empty() && own.batches.size() == baseline.batches.size());
  const Overhead overhead = overhead_of(baseline);
  const std::vector<double> times = calls_us(own, overhead);
  const std::vector<double> times_baseline = calls_us(baseline, overhead);
  std::vector<double> ratios;
  for (size_t i = 0; i < times.size(); ++i) ratios.push_back(times_baseline[i] / times[i]);
  const task::Estimate time = estimate_median(times);
  const task::Estimate time_baseline = estimate_median(times_baseline);
  const Bound bound = bound_of(own, overhead, time.median);
  MC_CHECK(bound.call_us >= time.median && time.median > 0);
  const double factor = bound.call_us / time.median;
  const double here = spread_at(bound.call_us);
  const double there = spread_at(time_baseline.median);
  Comparison found;
  found.time_us = widened(scaled(time, factor), here);
  found.time_baseline_us = widened(time_baseline, there);
  found.speedup = widened(scaled(estimate_median(ratios), 1 / factor), std::hypot(here, there));
  found.claimed_us = time.median;
  if (!bound.note.empty()) found.notes.push_back(bound.note);
  return found;
}

}  // namespace mc::timing
