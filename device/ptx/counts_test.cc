// SPDX-License-Identifier: Apache-2.0
//
// Counts of kernels whose accesses are known: testdata/counts.cu.
#include "ptx/counts.h"

#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

constexpr uint32_t kCountedThreads = 256, kCountedWarps = kCountedThreads / 32;

class CountsTest : public Kernels {
 protected:
  void SetUp() override {
    open(read_testdata("counts.ptx"), {.counts = true});
    x_ = put(std::vector<float>(64 * kCountedThreads), "x");
    y_ = put(std::vector<float>(64 * kCountedThreads), "y");
  }

  Counts counts_of(const std::string& kernel, const Arguments& arguments,
                   std::array<uint32_t, 3> block = {kCountedThreads, 1, 1}) {
    const LaunchReport report = launch({.kernel = kernel, .block = block, .arguments = arguments});
    EXPECT_TRUE(lines_of(report.findings).empty());
    return report.counts;
  }
  Counts copy(int stride, int first) {
    return counts_of("copy", Arguments().add(x_).add(y_).add(stride).add(first));
  }

  uint64_t x_ = 0, y_ = 0;
};

TEST_F(CountsTest, ARowOfFloatsTakesFourSectorsAWarp) {
  const Counts counts = copy(1, 0);
  EXPECT_EQ(counts.loads.requests, kCountedWarps);
  EXPECT_EQ(counts.loads.sectors, 4 * kCountedWarps);
  EXPECT_EQ(counts.stores.requests, kCountedWarps);
  EXPECT_EQ(counts.stores.sectors, 4 * kCountedWarps);
  EXPECT_EQ(counts.lanes, 32 * counts.instructions);
}

TEST_F(CountsTest, ARowThatBeginsBetweenSectorsTakesOneMore) {
  EXPECT_EQ(copy(1, 1).loads.sectors, 5 * kCountedWarps);
}

TEST_F(CountsTest, StridesTakeASectorForEachLane) {
  EXPECT_EQ(copy(2, 0).loads.sectors, 8 * kCountedWarps);
  EXPECT_EQ(copy(32, 0).loads.sectors, 32 * kCountedWarps);
}

TEST_F(CountsTest, VectorsOfFourTakeSixteenSectors) {
  const Counts counts = counts_of("copy4", Arguments().add(x_).add(y_));
  EXPECT_EQ(counts.loads.sectors, 16 * kCountedWarps);
  EXPECT_EQ(counts.stores.sectors, 16 * kCountedWarps);
}

TEST_F(CountsTest, LanesThatABranchLeavesOutAreNotActive) {
  const Counts counts = counts_of("half", Arguments().add(x_).add(y_));
  EXPECT_EQ(counts.loads.sectors, 2 * kCountedWarps);
  EXPECT_LT(counts.lanes, 32 * counts.instructions);
  EXPECT_GT(counts.lanes, 16 * counts.instructions);
}

TEST_F(CountsTest, AColumnOfASquareTileHasTheBanksOfOneWord) {
  const Counts plain = counts_of("columns", Arguments().add(y_), {32, 32, 1});
  EXPECT_EQ(plain.shared_passes_least, 64);  // 32 stores and 32 loads.
  EXPECT_EQ(plain.shared_passes, 32 + 32 * 32);
  const Counts padded = counts_of("padded_columns", Arguments().add(y_), {32, 32, 1});
  EXPECT_EQ(padded.shared_passes, 64);
}

TEST_F(CountsTest, WideSharedAccessesTakeAPassForEach128Bytes) {
  const Counts counts = counts_of("shared4", Arguments().add(y_), {32, 1, 1});
  EXPECT_EQ(counts.shared_passes_least, 8);
  EXPECT_EQ(counts.shared_passes, 8);
}

TEST_F(CountsTest, AtomicsOfOneWordTakeTurns) {
  const Counts counts = counts_of("same_word", Arguments().add(y_), {32, 1, 1});
  // A store by one lane, atomics of 32, a load that all lanes share.
  EXPECT_EQ(counts.shared_passes, 1 + 32 + 1);
}

TEST_F(CountsTest, RandomPlacesAreCountedAsSetsCountThem) {
  std::mt19937 generator(7);
  std::vector<int> places(kCountedThreads);
  for (int& one : places) one = static_cast<int>(generator() % (64 * kCountedThreads));
  uint64_t sectors = 0;
  for (size_t first = 0; first < kCountedThreads; first += 32) {
    std::set<int> distinct;
    for (size_t k = first; k < first + 32; ++k) distinct.insert(places[k] / 8);
    sectors += distinct.size();
  }
  const uint64_t p = put(places, "places");
  const Counts counts = counts_of("gather", Arguments().add(p).add(x_).add(y_));
  EXPECT_EQ(counts.loads.requests, 2 * kCountedWarps);
  EXPECT_EQ(counts.loads.sectors, 4 * kCountedWarps + sectors);
  EXPECT_EQ(counts.atomics.requests, kCountedWarps);
  EXPECT_EQ(counts.atomics.sectors, sectors);
}

TEST_F(CountsTest, ADeviceThatDoesNotCountHasNone) {
  open(read_testdata("counts.ptx"));
  x_ = put(std::vector<float>(64 * kCountedThreads), "x");
  y_ = put(std::vector<float>(64 * kCountedThreads), "y");
  EXPECT_EQ(copy(1, 0).instructions, 0);
}

}  // namespace
}  // namespace mc::ptx
