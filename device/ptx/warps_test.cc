// SPDX-License-Identifier: Apache-2.0
//
// Collective operations in warps of 32 and of 128 lanes: testdata/warps.cu.
#include <gmock/gmock.h>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kLanes = 128;

// Kernels whose first parameter is an array of words.
class WarpTest : public Kernels {
 protected:
  explicit WarpTest(int lanes) : lanes_(lanes) {}
  void SetUp() override { open(read_testdata("warps.ptx"), {.lanes = lanes_}); }

  // The words that one block stored, with no findings.
  std::vector<int> run(const std::string& kernel, uint32_t threads, size_t words) {
    return run(kernel, threads, words, Arguments());
  }
  std::vector<int> run(const std::string& kernel, uint32_t threads, size_t words,
                       const Arguments& others) {
    EXPECT_THAT(lines_of(findings(kernel, threads, words, others)), IsEmpty()) << kernel;
    return get<int>(y_, words);
  }

  std::vector<Finding> findings(const std::string& kernel, uint32_t threads, size_t words,
                                const Arguments& others = {}) {
    y_ = put(std::vector<int>(words), "y");
    Arguments arguments;
    arguments.add(y_).add_bytes(others.bytes().data(), others.bytes().size(), 1);
    return launch({.kernel = kernel, .block = {threads, 1, 1}, .arguments = arguments}).findings;
  }

  int lanes_;
  uint64_t y_ = 0;
};

// Functions of CUDA's headers are of warps of 32 on both devices.
class Warps : public WarpTest, public testing::WithParamInterface<int> {
 protected:
  Warps() : WarpTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Lanes, Warps, testing::Values(32, 128));

TEST_P(Warps, TilesHaveMasksOfTheirOwn) {
  const std::vector<int> y = run("tiles", kLanes, kLanes);
  for (int t = 0; t < kLanes; ++t) EXPECT_EQ(y[t], t / 32 != 2) << t;
}

TEST_P(Warps, ATileNeedsNoOtherOne) {
  const std::vector<int> y = run("one_tile_goes_on", kLanes, 32);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[30], 31);
}

TEST_P(Warps, CoalescedThreadsAreLanesOf32) {
  const std::vector<int> y = run("coalesced", kLanes, kLanes);
  for (int t = 0; t < kLanes; ++t) EXPECT_EQ(y[t], t % 4 == 1) << t;
}

TEST_P(Warps, BarriersDoNotWaitForExitedLanes) {
  const std::vector<int> y = run("some_lanes_left", kLanes, kLanes, Arguments().add(16));
  for (int t = 0; t < kLanes; ++t) {
    if (t % 32 == 15) continue;  // It reads a lane that left.
    EXPECT_EQ(y[t], t % 32 < 15 ? t + 1 + 16 : 0) << t;
  }
}

// The functions of device/musa/warps_of_128.cuh.
class LongWarps : public WarpTest {
 protected:
  LongWarps() : WarpTest(kLanes) {}
};

int expected_lane(int form, int lane, int width) {
  const int first = lane / width * width;
  const int wanted = form == 0   ? first + 3 % width
                     : form == 1 ? lane - 2
                     : form == 2 ? lane + 2
                                 : lane ^ 1;
  return wanted < first || wanted >= first + width ? lane : wanted;
}

TEST_F(LongWarps, ShuffleInSegmentsOfEveryWidth) {
  for (int width = 2; width <= kLanes; width *= 2) {
    const std::vector<int> y = run("shuffles", kLanes, 4 * kLanes, Arguments().add(width));
    for (int i = 0; i < 4 * kLanes; ++i) {
      ASSERT_EQ(y[i], expected_lane(i / kLanes, i % kLanes, width)) << i << " " << width;
    }
  }
}

TEST_F(LongWarps, TheWidthOfAShuffleIsTheWarpWhereNoneIsGiven) {
  const std::vector<int> y = run("shuffles_without_width", 2 * kLanes, 4 * kLanes);
  for (int t = 0; t < 2 * kLanes; ++t) {
    EXPECT_EQ(y[t], t / kLanes * kLanes) << t;
    EXPECT_EQ(y[2 * kLanes + t], t ^ 64) << t;
  }
}

TEST_F(LongWarps, AShuffleFromBeyondTheWarpGivesTheOwnValue) {
  EXPECT_THAT(run("far_shuffles", kLanes, kLanes), Each(1));
}

TEST_F(LongWarps, ShuffleTheTypesOfCudasFunctions) {
  EXPECT_THAT(run("shuffles_of_types", kLanes, kLanes), Each(1));
}

TEST_F(LongWarps, KernelsHaveTheSize) { EXPECT_THAT(run("sizes", 1, 2), ElementsAre(128, 7)); }

TEST_F(LongWarps, VotesOfAllLanesCount) { EXPECT_THAT(run("long_votes", kLanes, kLanes), Each(1)); }

TEST_F(LongWarps, ReturnedMasksHaveTheFirst32Lanes) {
  EXPECT_THAT(run("long_masks", kLanes, kLanes), Each(1));
}

TEST_F(LongWarps, ReduceOverAllLanes) {
  EXPECT_THAT(run("long_sums", kLanes, 5), ElementsAre(127 * 64, -127, 127, -1, 127));
}

TEST_F(LongWarps, APartialMaskNamesLanesOfTheFirst32) {
  const std::vector<int> y = run("first_lanes_alone", kLanes, 16);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[14], 15);
}

TEST_F(LongWarps, APartialMaskOfALaterLaneEndsTheLaunch) {
  const std::vector<Finding> found = findings("masks_of_halves", kLanes, kLanes);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kDeadlock);
  EXPECT_THAT(found[0].detail, HasSubstr("a mask that is not full names the first 32"));
  EXPECT_EQ(found[0].file, "warps.cu");  // The header's functions are inlined there.
}

TEST_F(LongWarps, AFullMaskWaitsForAllLanes) {
  const std::vector<Finding> found = findings("a_quarter_goes_on", kLanes, 32);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kDeadlock);
}

TEST_F(LongWarps, AFullMaskWaitsForNoLanesThatLeft) {
  const std::vector<int> y = run("a_quarter_stays", kLanes, 32);
  for (int t = 0; t < 32; ++t) EXPECT_EQ(y[t], t ^ 1) << t;
}

TEST_F(LongWarps, SynchronisedLanesDoNotRace) {
  run("pass_on_by_shared_memory", 2 * kLanes, 2 * kLanes, Arguments().add(64));
}

TEST_F(LongWarps, LanesOfTwoWarpsRace) {
  const std::vector<Finding> found =
      findings("pass_on_by_shared_memory", 2 * kLanes, 2 * kLanes, Arguments().add(128));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].kind, FindingKind::kSharedRace);
}

TEST_F(LongWarps, TheLastWarpOfABlockMayBeShort) {
  const std::vector<int> y = run("a_short_warp", 200, 200);
  for (int t = 0; t < 200; ++t) EXPECT_EQ(y[t], t < kLanes ? kLanes : 72) << t;
}

}  // namespace
}  // namespace mc::ptx
