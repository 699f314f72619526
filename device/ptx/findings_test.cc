// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The line of testdata/faults.cu with a comment that names the finding, in a kernel.
int marked_line(const std::string& kernel) {
  std::istringstream lines(read_testdata("faults.cu"));
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find(" " + kernel + "(") != std::string::npos) inside = true;
    if (inside && line.find("  // ") != std::string::npos) return number;
    if (inside && line == "}") return 0;
  }
  return 0;
}

class Faults : public Kernels {
 protected:
  void SetUp() override { open(read_testdata("faults.ptx")); }

  LaunchReport run(const char* kernel, uint32_t threads, const Arguments& arguments,
                   uint32_t blocks = 1) {
    return launch({.kernel = kernel,
                   .grid = {blocks, 1, 1},
                   .block = {threads, 1, 1},
                   .arguments = arguments});
  }

  // The one finding of a launch, at the marked line.
  Finding one(const char* kernel, const LaunchReport& report) {
    EXPECT_EQ(report.findings.size(), 1U);
    if (report.findings.empty()) return {};
    const Finding& finding = report.findings[0];
    EXPECT_EQ(finding.kernel, kernel);
    EXPECT_EQ(finding.file, "faults.cu");
    const int line = marked_line(kernel);
    EXPECT_TRUE(line == 0 || finding.line == line) << describe(finding);
    return finding;
  }

  uint64_t zeros(size_t words) { return put(std::vector<int>(words), "y"); }
};

TEST_F(Faults, MissingBarrierIsARaceOfBothThreads) {
  const LaunchReport report = run("missing_barrier", 64, Arguments().add(zeros(64)));
  // The first warp reads before the second warp writes, and the second warp reads what the first
  // wrote.
  ASSERT_THAT(lines_of(report.findings),
              ElementsAre(HasSubstr("a thread writes what another thread read"),
                          HasSubstr("a thread reads what another thread wrote"),
                          HasSubstr("no thread of its block wrote")));
  const Finding& race = report.findings[1];
  EXPECT_EQ(race.kind, FindingKind::kSharedRace);
  EXPECT_EQ(race.line, marked_line("missing_barrier"));
  EXPECT_THAT(race.array, HasSubstr("missing_barrier"));
  ASSERT_TRUE(race.thread && race.other);
  EXPECT_EQ(race.thread->thread[0] + race.other->thread[0], 63U);
}

TEST_F(Faults, WriteAfterAnotherThreadsReadIsARace) {
  const LaunchReport report = run("write_after_read", 64, Arguments().add(zeros(64)));
  ASSERT_EQ(report.findings.size(), 2U);
  EXPECT_EQ(report.findings[1].line, marked_line("write_after_read"));
  EXPECT_THAT(report.findings[1].detail, HasSubstr("writes what another thread read"));
}

TEST_F(Faults, LanesOfAWarpNeedABarrier) {
  const Finding race =
      one("missing_warp_barrier", run("missing_warp_barrier", 32, Arguments().add(zeros(32))));
  EXPECT_EQ(race.kind, FindingKind::kSharedRace);
}

TEST_F(Faults, WritesOfTheSameValueDoNotRace) {
  const uint64_t y = zeros(64);
  EXPECT_THAT(lines_of(run("same_flag", 64, Arguments().add(y)).findings), IsEmpty());
  EXPECT_THAT(get<int>(y, 64), testing::Each(1));
}

TEST_F(Faults, UnwrittenWordIsFound) {
  const LaunchReport report = run("unwritten", 64, Arguments().add(zeros(64)));
  const Finding unwritten = one("unwritten", report);
  EXPECT_EQ(unwritten.kind, FindingKind::kUnwrittenShared);
  EXPECT_EQ(unwritten.count, 32);
  EXPECT_TRUE(report.is_complete);
}

TEST_F(Faults, WriteBeyondAnAllocationNamesIt) {
  const Finding write =
      one("beyond_global", run("beyond_global", 128, Arguments().add(zeros(64)).add(64)));
  EXPECT_EQ(write.kind, FindingKind::kOutOfBoundsWrite);
  EXPECT_EQ(write.array, "y");
  EXPECT_EQ(write.thread->thread[0], 64U);
}

TEST_F(Faults, ReadBeyondASharedArrayIsNotOfTheNextOne) {
  const LaunchReport report = run("beyond_shared", 32, Arguments().add(zeros(32)).add(4));
  const Finding read = one("beyond_shared", report);
  EXPECT_EQ(read.kind, FindingKind::kOutOfBoundsRead);
  EXPECT_FALSE(report.is_complete);
  EXPECT_THAT(lines_of(run("beyond_shared", 32, Arguments().add(zeros(32)).add(0)).findings),
              IsEmpty());
}

TEST_F(Faults, VectorAtAWrongMultipleIsMisaligned) {
  const Finding read =
      one("misaligned", run("misaligned", 8, Arguments().add(zeros(64)).add(zeros(8))));
  EXPECT_EQ(read.kind, FindingKind::kMisaligned);
  EXPECT_EQ(read.thread->thread[0], 1U);
}

TEST_F(Faults, NullPointerIsNamed) {
  const Finding write = one("null_pointer", run("null_pointer", 32, Arguments().add(uint64_t{0})));
  EXPECT_EQ(write.kind, FindingKind::kOutOfBoundsWrite);
  EXPECT_THAT(write.detail, HasSubstr("null pointer"));
}

TEST_F(Faults, BarriersAtTwoPlacesAreDivergent) {
  const Finding found =
      one("divergent_barrier", run("divergent_barrier", 64, Arguments().add(zeros(64))));
  EXPECT_EQ(found.kind, FindingKind::kDivergentBarrier);
  EXPECT_TRUE(found.other);
}

TEST_F(Faults, BlocksThatWriteOneWordRace) {
  const Finding race = one("global_race", run("global_race", 1, Arguments().add(zeros(4)), 16));
  EXPECT_EQ(race.kind, FindingKind::kGlobalRace);
  EXPECT_EQ(race.array, "y");
  ASSERT_TRUE(race.other);
  EXPECT_NE(race.thread->block[0], race.other->block[0]);
}

TEST_F(Faults, ThreadsOfABlockRaceInGlobalMemory) {
  const Finding race = one("race_in_block", run("race_in_block", 64, Arguments().add(zeros(128))));
  EXPECT_EQ(race.kind, FindingKind::kGlobalRace);
}

TEST_F(Faults, WriteAfterAnEarlierBlocksReadIsARace) {
  const LaunchReport report =
      run("read_before_write", 64, Arguments().add(zeros(64)).add(zeros(64)), 5);
  const Finding race = one("read_before_write", report);
  EXPECT_EQ(race.kind, FindingKind::kGlobalRace);
  EXPECT_EQ(race.count, 64);
  ASSERT_TRUE(race.thread && race.other);
  EXPECT_EQ(race.thread->block[0], 4U);
  EXPECT_EQ(race.other->block[0], 0U);
  EXPECT_EQ(race.other->thread[0], race.thread->thread[0]);
  EXPECT_THAT(race.detail, HasSubstr("writes what another thread read"));
}

TEST_F(Faults, ReadOfTheNextBlocksFirstWordRacesWithItsWrite) {
  const Finding race =
      one("shift_in_place", run("shift_in_place", 48, Arguments().add(zeros(200)), 4));
  EXPECT_EQ(race.kind, FindingKind::kGlobalRace);
  EXPECT_EQ(race.count, 3);
  ASSERT_TRUE(race.other);
  EXPECT_EQ(race.thread->thread[0], 0U);
  EXPECT_EQ(race.other->thread[0], 47U);
  EXPECT_EQ(race.other->block[0] + 1, race.thread->block[0]);
}

TEST_F(Faults, AtomicWithoutAFencePublishesNothing) {
  const Finding race = one(
      "last_block_without_fence",
      run("last_block_without_fence", 1, Arguments().add(zeros(8)).add(zeros(1)).add(zeros(1)), 8));
  EXPECT_EQ(race.kind, FindingKind::kGlobalRace);
  EXPECT_EQ(race.count, 7);
}

// Kernels with partial masks read absent lanes and do not use the value.
TEST_F(Faults, ShuffleOfAnAbsentLaneGivesANan) {
  const uint64_t y = zeros(32);
  EXPECT_TRUE(run("absent_lane", 32, Arguments().add(y)).findings.empty());
  const std::vector<float> values = get<float>(y, 32);
  for (size_t k = 0; k < 8; ++k) EXPECT_EQ(values[k], static_cast<float>(k + 8));
  for (size_t k = 8; k < 16; ++k) EXPECT_NE(values[k], values[k]);
}

TEST_F(Faults, IncompleteBarrierIsADeadlock) {
  const Finding found = one("deadlock", run("deadlock", 64, Arguments().add(zeros(64))));
  EXPECT_EQ(found.kind, FindingKind::kDeadlock);
}

TEST_F(Faults, TrapEndsTheLaunch) {
  const uint64_t x = put(std::vector<int>{0, 0, 5}, "x");
  const Finding found = one("traps", run("traps", 3, Arguments().add(x)));
  EXPECT_EQ(found.kind, FindingKind::kTrap);
  EXPECT_EQ(found.thread->thread[0], 2U);
}

TEST_F(Faults, ExitedThreadsDoNotCountAtABarrier) {
  const uint64_t y = zeros(300);
  EXPECT_THAT(lines_of(run("early_exit", 256, Arguments().add(y).add(300), 2).findings), IsEmpty());
  EXPECT_EQ(get<float>(y, 300)[299], 298);
}

TEST_F(Faults, IndexBeyondALocalArrayIsFound) {
  const uint64_t index = put(std::vector<int>{0, 7, 8}, "index");
  const LaunchReport report = run("beyond_local", 3, Arguments().add(index).add(zeros(3)));
  EXPECT_EQ(one("beyond_local", report).kind, FindingKind::kOutOfBoundsRead);
}

TEST_F(Faults, ImpossibleShapesAreFindings) {
  const LaunchReport report = launch({.kernel = "unwritten", .block = {2000, 1, 1}});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kLaunchLimit);
  const LaunchReport no_arguments = launch({.kernel = "unwritten"});
  EXPECT_THAT(no_arguments.findings.at(0).detail, HasSubstr("the kernel takes 8"));
}

TEST_F(Faults, UnknownKernelIsAnError) {
  const auto report = device_->launch({.module = module_, .kernel = "nothing"});
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mc::ptx
