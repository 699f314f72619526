// SPDX-License-Identifier: Apache-2.0
#include "timing/series.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::timing {
namespace {

constexpr int kCalls = 400;
constexpr double kClockUs = 160;  // From the events, of honest processes.

// An arm whose kernels take `kernel_us` each, with `gap_us` between launches; its bursts differ a
// little.
Series series(double kernel_us, double gap_us, bool is_trusted = false, int launches = 1) {
  Series made;
  for (int i = 0; i < 13; ++i) {
    const double events_us = kCalls * launches * (kernel_us + gap_us) * (1 + 1e-4 * (i % 5));
    made.samples.push_back({.events_us = events_us,
                            .bracket_us = events_us + kClockUs,
                            .calls = kCalls,
                            .is_trusted = is_trusted});
  }
  TracedKernel kernel;
  kernel.launches = kCalls * launches;
  kernel.time_us = kernel.launches * kernel_us;
  made.traced = {{{kernel}, kCalls, kernel.time_us}};
  return made;
}

Charges charges_after(const Series& baseline) {
  Charges charges{ChargeRules{}};
  for (const BurstReading& burst : baseline.samples) charges.note_baseline(burst);
  return charges;
}

Comparison compared(const Series& own, const Series& baseline) {
  return compare(charges_after(baseline), {}, own, baseline);
}

TEST(Compare, TellsTimesAndTheirRatio) {
  const Comparison found = compared(series(5, 1), series(20, 1, true));
  EXPECT_NEAR(found.time_us.median, 5, 0.01);
  EXPECT_NEAR(found.time_baseline_us.median, 20, 0.01);
  EXPECT_NEAR(found.speedup.median, 4, 0.01);
  EXPECT_LT(found.speedup.low, 4);
  EXPECT_GT(found.speedup.high, 4);
}

// The gap differs from process to process; a candidate beside itself is as fast all the same.
TEST(Compare, TakesEachProcessesOwnGap) {
  for (const auto& [here, there] : {std::pair{0.9, 1.15}, {1.2, 0.9}, {1.0, 1.0}}) {
    const Comparison found = compared(series(1.8, here), series(1.8, there, true));
    EXPECT_LE(found.speedup.low, 1);
    EXPECT_GE(found.speedup.high, 1);
    EXPECT_NEAR(found.time_us.median, 1.8, 0.01);
  }
}

// Only one gap of a call is taken off; those between its own kernels remain, and differ from
// process to process.
TEST(Compare, AllowsForTheGapsInsideACall) {
  const auto width = [](int launches) {
    const double kernel_us = (100 - 1.0 * (launches - 1)) / launches;
    const task::Estimate found =
        compared(series(kernel_us, 1, false, launches), series(100, 1, true)).time_us;
    EXPECT_NEAR(found.median, 100, 0.1);
    return found.high - found.low;
  };
  EXPECT_NEAR(width(11), 2 * 1.96 * 1.0, 0.2);
  EXPECT_LT(width(1), 1);
  const Comparison two = compared(series(1.5, 0.92, false, 2), series(1.5, 1.08, true, 2));
  EXPECT_LE(two.speedup.low, 1);
  EXPECT_GE(two.speedup.high, 1);
}

TEST(Compare, AllowsForAGapThatIsNotBelieved) {
  const task::Estimate found = compared(series(3, 2.2), series(3, 1, true)).time_us;
  EXPECT_NEAR(found.median, 3 + 2.2 - 1.25, 0.01);
  EXPECT_NEAR(found.high / found.low, 1 + 2 * 1.96 * 0.1 / found.median, 0.015);
}

// Both kernels move much memory, so both leave more; the candidate's time is its kernel's.
TEST(Compare, BelievesAGapThatTheBaselineHasToo) {
  const Comparison found = compared(series(12, 1.6), series(14, 1.5, true));
  EXPECT_NEAR(found.time_us.median, 12, 0.01);
  EXPECT_NEAR(found.time_baseline_us.median, 14, 0.01);
  EXPECT_NEAR(found.gap_us, 1.6, 0.01);
  EXPECT_NEAR(found.gap_baseline_us, 1.5, 0.01);
}

TEST(Compare, GainsLittleByForgedRecords) {
  Series forged = series(1.8, 1.0);
  forged.traced[0].kernels[0].time_us /= 10;
  EXPECT_NEAR(compared(forged, series(1.8, 1.0, true)).time_us.median, 1.8 - 0.25, 0.01);
}

TEST(Compare, AnswersForNoTracedBurstThatWasDisturbed) {
  Series own = series(3, 1.1);
  own.traced = {3, own.traced[0]};
  own.traced[1].kernels[0].time_us *= 1.2;
  const Comparison found = compared(own, series(3, 1, true));
  EXPECT_NEAR(found.gap_us, 1.1, 0.01);
  EXPECT_NEAR(found.time_us.median, 3, 0.01);
}

// Fast where nobody traces it.
TEST(Compare, ChargesWhatTracedKernelsTake) {
  Series own = series(5, 1);
  own.traced[0].busy_us = kCalls * 50;
  const Comparison found = compared(own, series(20, 1, true));
  EXPECT_NEAR(found.claimed_us, 5, 1);
  EXPECT_NEAR(found.time_us.median, 50, 0.01);
  EXPECT_NEAR(found.speedup.median, 0.4, 0.01);
  EXPECT_LT(found.speedup.low, found.speedup.median);
}

// Tracing makes some kernels a little longer, and adds up what runs at once.
TEST(Compare, ChargesNobodyForWhatTracingTakes) {
  Series own = series(50, 1);
  own.traced[0].busy_us = 1.09 * kCalls * 50;
  own.traced[0].kernels[0].time_us *= 2;
  EXPECT_NEAR(compared(own, series(20, 1, true)).time_us.median, 50, 0.5);
}

TEST(Compare, AllowsForTheUsualGapWhereStreamsOverlap) {
  Series two = series(3, 1);
  std::vector<TracedKernel>& kernels = two.traced[0].kernels;
  kernels.push_back(kernels[0]);
  kernels[1].stream = 7;
  EXPECT_NEAR(compared(two, series(3, 1, true)).time_us.median, 3, 0.01);
}

TEST(Compare, TakesBurstsOfAnyLength) {
  Series own = series(5, 1);
  own.samples[3].calls = 100;
  own.samples[3].events_us = 600;
  own.samples[3].bracket_us = 600 + kClockUs;
  EXPECT_NEAR(compared(own, series(5, 1, true)).speedup.median, 1, 0.001);
}

// Bursts that differ by `apart`, as a share, from one to the next.
Series scattered(double apart, int bursts) {
  Series made = series(5, 1);
  made.samples.resize(static_cast<size_t>(bursts), made.samples.front());
  for (int i = 0; i < bursts; ++i) {
    made.samples[static_cast<size_t>(i)].events_us = kCalls * 6 * (1 + apart * (i % 5));
  }
  return made;
}

TEST(IsPrecise, WhereBurstsDifferByLessThanProcesses) {
  const Series baseline = scattered(0, 13);
  EXPECT_TRUE(is_precise({}, scattered(0, 13), baseline));
  EXPECT_TRUE(is_precise({}, scattered(1e-3, 13), baseline));
  EXPECT_FALSE(is_precise({}, scattered(1e-2, 13), baseline));
}

TEST(IsPrecise, NeverWhereProcessesDoNotDiffer) {
  EXPECT_FALSE(is_precise({0, 0, 0}, scattered(0, 13), scattered(0, 13)));
}

// As its name says: beside the interval of very many bursts, that of these is hardly wider.
TEST(IsPrecise, MeansThatManyMoreBurstsWouldHardlyHelp) {
  for (const double apart : {1e-4, 1e-3, 2e-3, 5e-3, 1e-2}) {
    const auto interval = [&](int bursts) {
      const Series own = scattered(apart, bursts);
      const task::Estimate found = compared(own, scattered(0, bursts)).speedup;
      return found.high - found.low;
    };
    if (!is_precise({}, scattered(apart, 13), scattered(0, 13))) continue;
    EXPECT_LT(interval(13), 1.15 * interval(2001)) << apart;
  }
}

// ---- Looks --------------------------------------------------------------------------------------

constexpr double kLookUs = 200;  // After the clock, of an honest process's outputs.

// With looks that are late by `late_us` of each burst.
Series looked_at(Series series, const std::vector<double>& late_us = {}) {
  for (size_t i = 0; i < series.samples.size(); ++i) {
    BurstReading& burst = series.samples[i];
    burst.queue_us = 1;
    burst.looked_us = burst.bracket_us + kLookUs + (late_us.empty() ? 0 : late_us[i]);
  }
  return series;
}

// Which says that it takes a tenth of its time in so many of its bursts.
Series forged(Series series, int bursts) {
  for (int i = 0; i < bursts; ++i) {
    BurstReading& burst = series.samples[static_cast<size_t>(i)];
    burst.events_us /= 10;
    burst.bracket_us = burst.events_us + kClockUs;
  }
  return series;
}

TEST(SoonestSeen, ABusyMachineIsNotCharged) {
  const Series baseline = looked_at(series(5, 1, true));
  std::vector<double> late_us(13, 700.0);
  late_us[5] = 20;  // Once the judge had its turn at once.
  const Series own = looked_at(series(5, 1), late_us);
  EXPECT_NEAR(charges_after(baseline).look_excess_us(soonest_seen(charges_after(baseline), own)),
              20, 1e-6);
  EXPECT_NEAR(compared(own, baseline).speedup.median, 1, 0.01);
  EXPECT_THAT(notes_on(charges_after(baseline), own), testing::IsEmpty());
}

TEST(SoonestSeen, WhoSaysTooEarlyThatAllIsDoneIsCharged) {
  const Series baseline = looked_at(series(5, 1, true));
  const Series own = forged(looked_at(series(5, 1)), 13);
  EXPECT_NEAR(compared(own, baseline).speedup.median, 1, 0.03);  // No gap is believed of it.
  EXPECT_THAT(notes_on(charges_after(baseline), own),
              testing::ElementsAre(testing::StartsWith("outputs could not be copied")));
}

// A judge may be late by much, and that differently each time; who says the truth is hardly ever
// charged for it.
TEST(SoonestSeen, NoiseAloneIsHardlyEverCharged) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> any(std::log(150), 1.0);
  std::bernoulli_distribution is_prompt(0.2);
  const std::vector<std::function<double()>> judges = {
      [&] { return any(random); }, [&] { return is_prompt(random) ? 20.0 : 300.0; }};
  for (const auto& late_us : judges) {
    int charged = 0;
    for (int i = 0; i < 1000; ++i) {
      std::vector<double> own_us(13), baseline_us(13);
      std::ranges::generate(own_us, late_us);
      std::ranges::generate(baseline_us, late_us);
      const Charges charges = charges_after(looked_at(series(5, 1, true), baseline_us));
      const Series own = looked_at(series(5, 1), own_us);
      charged += !charges.look_confirms(soonest_seen(charges, own));
    }
    EXPECT_LE(charged, 5);
  }
}

// Forging the seven bursts that make the median what it is leaves none of that half to be seen;
// forging fewer does not move the median.
TEST(SoonestSeen, HonestBurstsBetweenDoNotHelp) {
  const Series baseline = looked_at(series(5, 1, true));
  for (int bursts = 1; bursts <= 13; ++bursts) {
    const Series own = forged(looked_at(series(5, 1)), bursts);
    EXPECT_LT(compared(own, baseline).speedup.median, 1.01) << bursts;
  }
}

TEST(NotesOn, AreSilentAboutAnHonestArm) {
  const Series baseline = series(5, 1, true);
  EXPECT_THAT(notes_on(charges_after(baseline), series(5, 1)), testing::IsEmpty());
}

TEST(NotesOn, TellOfBurstsThatTheClockCharged) {
  Series late = series(5, 1);
  late.samples[0].bracket_us += 1000;
  late.samples[1].bracket_us += 1000;
  EXPECT_THAT(notes_on(charges_after(series(5, 1, true)), late),
              testing::ElementsAre(testing::StartsWith("2 bursts took longer")));
}

TEST(NotesOn, TellOfABusyHost) {
  Series busy = series(5, 1);
  busy.samples[4].queue_us = kCalls * 2000;
  EXPECT_THAT(notes_on(charges_after(series(5, 1, true)), busy),
              testing::ElementsAre(testing::HasSubstr("host busy")));
}

}  // namespace
}  // namespace mc::timing
