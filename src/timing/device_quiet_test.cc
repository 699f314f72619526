// SPDX-License-Identifier: Apache-2.0
#include "timing/device_quiet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "timing/test_rehearsal.h"

namespace mc::timing {
namespace {

constexpr double kJudgeS = 20;
constexpr DeviceSpeed kSpeed{.bandwidth_gbs = 3000, .fill_gbs = 2000};
constexpr QuietRules kRules{.fill_s = 0.02, .share_min = 0.75, .wait_s = 0.5, .interval_s = 0.01};

// A judge that finds the device so fast, one time after the other; the last one stays.
Result<Rehearsal> judge_that_finds(std::vector<double> fill_gbs) {
  Scripts scripts;
  scripts.judge.fill_gbs = std::move(fill_gbs);
  return Rehearsal::create(scripts);
}

TEST(Quiet, IsADeviceThatIsAboutAsFastAsItCanBe) {
  for (const auto& [gbs, expected] :
       {std::pair{2000.0, true}, std::pair{2100.0, true}, std::pair{1510.0, true},
        std::pair{1490.0, false}, std::pair{1000.0, false}}) {
    auto rehearsal = judge_that_finds({gbs});
    ASSERT_TRUE(rehearsal);
    const auto quiet = is_quiet(kRules, kSpeed, rehearsal->judge(), kJudgeS);
    ASSERT_TRUE(quiet) << quiet.error().message;
    EXPECT_EQ(*quiet, expected) << gbs;
  }
}

TEST(Quiet, IsLookedForInSomeTimeSlices) {
  auto rehearsal = judge_that_finds({2000});
  ASSERT_TRUE(rehearsal);
  ASSERT_TRUE(is_quiet(kRules, kSpeed, rehearsal->judge(), kJudgeS));
  const auto fills = rehearsal->scenes("judge", "fill");
  ASSERT_THAT(fills, testing::SizeIs(1));
  EXPECT_EQ(fills[0].nbytes, 40'000'000'000);
}

TEST(Quiet, IsAwaited) {
  auto rehearsal = judge_that_finds({900, 1000, 1990});
  ASSERT_TRUE(rehearsal);
  const auto quiet = await_quiet(kRules, kSpeed, rehearsal->judge(), kJudgeS);
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(*quiet);
  EXPECT_THAT(rehearsal->scenes("judge", "fill"), testing::SizeIs(3));
}

TEST(Quiet, IsNotAwaitedForEver) {
  auto rehearsal = judge_that_finds({1000});
  ASSERT_TRUE(rehearsal);
  const auto quiet = await_quiet(kRules, kSpeed, rehearsal->judge(), kJudgeS);
  ASSERT_TRUE(quiet);
  EXPECT_FALSE(*quiet);
  EXPECT_THAT(rehearsal->scenes("judge", "fill"), testing::SizeIs(testing::Gt(2)));
}

}  // namespace
}  // namespace mc::timing
