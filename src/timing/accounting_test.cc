// SPDX-License-Identifier: Apache-2.0
#include "timing/accounting.h"

#include <algorithm>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::timing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kCalls = 400;
constexpr int kBatches = 13;
constexpr double kDoneUs = 160;    // What the clock shows beside the work, of honest processes,
constexpr double kCopiedUs = 400;  // and until outputs are copied.

// A process whose calls take so long; its batches differ a little.
Samples samples(double call_us, const std::function<void(BatchSample&)>& change = {}) {
  Samples made;
  for (int i = 0; i < kBatches; ++i) {
    const double work_us = kCalls * call_us;
    const double jitter_us = 7.0 * (i % 5);
    made.batches.push_back({.calls = kCalls,
                            .done_us = work_us + kDoneUs + jitter_us,
                            .copied_us = work_us + kCopiedUs + jitter_us,
                            .events_us = work_us});
    if (change) change(made.batches.back());
  }
  made.traced = {{{}, kCalls, kCalls * call_us}};
  return made;
}

TEST(Compare, TellsTimesAndTheirRatio) {
  const Comparison found = compare(samples(5), samples(20));
  EXPECT_NEAR(found.time_us.median, 5, 0.01);
  EXPECT_NEAR(found.time_baseline_us.median, 20, 0.01);
  EXPECT_NEAR(found.speedup.median, 4, 0.01);
  EXPECT_LT(found.speedup.low, 4);
  EXPECT_GT(found.speedup.high, 4);
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(Compare, BelievesNoEventsOfACandidate) {
  const Comparison found =
      compare(samples(5, [](BatchSample& batch) { batch.events_us = 1; }), samples(20));
  EXPECT_NEAR(found.time_us.median, 5, 0.01);
}

TEST(Compare, IsNotMovedByAFewDisturbedBatches) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  Samples own = samples(50);
  Samples baseline = samples(60);
  for (Samples* each : {&own, &baseline}) {
    for (int i = 0; i < 4; ++i) {
      const double late_us = static_cast<double>(random() % 1'000'000);
      each->batches[random() % kBatches].done_us += late_us;
      each->batches[random() % kBatches].copied_us += late_us;
    }
  }
  const Comparison found = compare(own, baseline);
  EXPECT_NEAR(found.time_us.median, 50, 0.1);
  EXPECT_NEAR(found.speedup.median, 1.2, 0.01);
}

// Its outputs are right as they are copied; so they were computed by then.
TEST(Compare, ChargesUntilOutputsWereCopiedWhoSaysTooEarlyThatAllIsDone) {
  Samples own = samples(5, [](BatchSample& batch) { batch.done_us = 1; });
  own.traced.clear();
  const Comparison found = compare(own, samples(20));
  EXPECT_NEAR(found.time_us.median, 5, 0.05);
  EXPECT_NEAR(found.speedup.median, 4, 0.05);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("could not be copied")));
}

TEST(Compare, NeedsOnePromptCopy) {
  Samples own = samples(5, [](BatchSample& batch) { batch.copied_us += 5000; });
  EXPECT_GT(compare(own, samples(20)).time_us.median, 10);
  own.batches[7].copied_us -= 5000;
  EXPECT_NEAR(compare(own, samples(20)).time_us.median, 5, 0.1);
}

// A process that is not enqueued tells where outputs lie while the clock runs.
TEST(Compare, AllowsForTellingWhereOutputsLie) {
  const auto told = [](BatchSample& batch) { batch.copied_us += 500 + 8.0 * batch.calls; };
  Samples own = samples(20, told);
  EXPECT_GT(compare(own, samples(20)).time_us.median, 25);
  own.is_enqueued = false;
  EXPECT_NEAR(compare(own, samples(20)).time_us.median, 20, 0.1);
  for (BatchSample& batch : own.batches) batch.done_us = 1;
  EXPECT_GT(compare(own, samples(20)).time_us.median, 20);
}

TEST(Compare, ChargesWhatTracedKernelsTake) {
  Samples own = samples(5);
  own.traced = {{{}, 10, 500}, {{}, 10, 300}};
  const Comparison found = compare(own, samples(20));
  EXPECT_NEAR(found.time_us.median, 30, 0.01);
  EXPECT_NEAR(found.claimed_us, 5, 0.05);
  EXPECT_NEAR(found.speedup.median, 20.0 / 30, 0.01);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("where they were traced")));
}

TEST(Compare, BelievesNoLessThanTheLeast) {
  Samples own = samples(5);
  own.least_us = 12;
  EXPECT_NEAR(compare(own, samples(20)).time_us.median, 12, 0.01);
}

TEST(Compare, TellsNoTimeOfNothing) {
  const Comparison found = compare(samples(0), samples(20));
  EXPECT_GT(found.time_us.median, 0);
  EXPECT_LT(found.time_us.median, 0.5);
}

TEST(Compare, VerifiesNothingAmongBaselines) {
  const auto not_copied = [](BatchSample& batch) { batch.copied_us = 0; };
  EXPECT_NEAR(compare(samples(5, not_copied), samples(20, not_copied)).time_us.median, 5, 0.01);
}

TEST(TraceConfirms, AsFarAsTracingLengthensKernels) {
  EXPECT_TRUE(trace_confirms(100, 111));
  EXPECT_FALSE(trace_confirms(100, 112));
  EXPECT_TRUE(trace_confirms(1, 2));
}

}  // namespace
}  // namespace mc::timing
