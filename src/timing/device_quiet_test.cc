// SPDX-License-Identifier: Apache-2.0
#include "timing/device_quiet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "timing/fakes/simulation.h"

namespace mc::timing {
namespace {

constexpr double kJudgeS = 20;
constexpr DeviceSpeed kSpeed{.bandwidth_gbs = 3000, .fill_gbs = 2000};
constexpr double kIntervalS = 0.01;

QuietRules rules(const Simulation& simulation) {
  return {.fill_s = 0.02,
          .share_min = 0.75,
          .wait_s = 0.5,
          .interval_s = kIntervalS,
          .clock = simulation.clock()};
}

// A judge that finds the device so fast, one time after the other; the last one stays.
Behaviors that_finds(std::vector<double> fill_gbs) {
  Behaviors behaviors;
  behaviors.judge.fill_gbs = std::move(fill_gbs);
  return behaviors;
}

TEST(Quiet, IsADeviceThatIsAboutAsFastAsItCanBe) {
  for (const auto& [gbs, expected] :
       {std::pair{2000.0, true}, std::pair{2100.0, true}, std::pair{1510.0, true},
        std::pair{1490.0, false}, std::pair{1000.0, false}}) {
    Simulation simulation(that_finds({gbs}));
    const auto quiet = is_quiet(rules(simulation), kSpeed, simulation.judge(), kJudgeS);
    ASSERT_TRUE(quiet) << quiet.error().message;
    EXPECT_EQ(*quiet, expected) << gbs;
  }
}

TEST(Quiet, IsLookedForInSomeTimeSlices) {
  Simulation simulation(that_finds({2000}));
  ASSERT_TRUE(is_quiet(rules(simulation), kSpeed, simulation.judge(), kJudgeS));
  const auto fills = simulation.records("judge", "fill");
  ASSERT_THAT(fills, testing::SizeIs(1));
  EXPECT_EQ(fills[0].nbytes, 40'000'000'000);
}

TEST(Quiet, IsAwaited) {
  Simulation simulation(that_finds({900, 1000, 1990}));
  const Clock clock = simulation.clock();
  const auto start = clock.now();
  const auto quiet = await_quiet(rules(simulation), kSpeed, simulation.judge(), kJudgeS);
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(*quiet);
  EXPECT_THAT(simulation.records("judge", "fill"), testing::SizeIs(3));
  EXPECT_NEAR(clock.microseconds_since(start), 2 * kIntervalS * 1e6, 1);
}

TEST(Quiet, IsNotAwaitedForEver) {
  Simulation simulation(that_finds({1000}));
  const auto quiet = await_quiet(rules(simulation), kSpeed, simulation.judge(), kJudgeS);
  ASSERT_TRUE(quiet);
  EXPECT_FALSE(*quiet);
  EXPECT_THAT(simulation.records("judge", "fill"), testing::SizeIs(51));
}

}  // namespace
}  // namespace mc::timing
