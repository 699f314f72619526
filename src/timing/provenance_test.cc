// SPDX-License-Identifier: Apache-2.0
#include "timing/provenance.h"

#include <utility>

#include <gtest/gtest.h>

namespace mc::timing {
namespace {

TracedKernel kernel(const char* name, const char* owner, double us) {
  TracedKernel kernel;
  kernel.name = name;
  kernel.owner = owner;
  kernel.launches = 2;
  kernel.time_us = us;
  kernel.block = {128, 1, 1};
  kernel.registers = 32;
  return kernel;
}

// A batch of so many calls.
std::vector<TracedBatch> traced(std::vector<TracedKernel> kernels, int calls) {
  return {{std::move(kernels), calls, 0}};
}

const std::vector<std::string> kLibraries = {"/cache/ab/mine.so"};
const std::vector<OwnKernel> kOwn = {{"_Z4minev", 12}};

TEST(FindOwners, KnowsTheCandidateByTheFileThatHoldsTheCode) {
  const auto found =
      find_owners(traced({kernel("_Z4minev", "/cache/ab/mine.so", 8)}, 2), kLibraries, kOwn);
  ASSERT_EQ(found.kernels.size(), 1U);
  EXPECT_EQ(found.kernels[0].owner, "candidate");
  EXPECT_EQ(found.kernels[0].time_us, 4);
  EXPECT_EQ(found.kernels[0].launches, 1);
  EXPECT_EQ(found.kernels[0].spill_bytes, 12);
  EXPECT_EQ(found.own_share, 1);
}

TEST(FindOwners, IsNotFooledByAFileOfTheSameName) {
  const auto found =
      find_owners(traced({kernel("_Z4minev", "/lib/mine.so", 6)}, 1), kLibraries, kOwn);
  EXPECT_EQ(found.kernels[0].owner, "mine.so");
  EXPECT_EQ(found.own_share, 0);
}

TEST(FindOwners, AKernelOfALibraryIsNotOwnWhateverItsName) {
  const auto found =
      find_owners(traced({kernel("_Z4minev", "/lib/libtorch_cuda.so", 6)}, 1), kLibraries, kOwn);
  EXPECT_EQ(found.kernels[0].owner, "libtorch_cuda.so");
  EXPECT_EQ(found.own_share, 0);
}

TEST(FindOwners, AKernelIsOwnWhateverItsName) {
  const std::string name(1000, 'k');
  const auto found =
      find_owners(traced({kernel(name.c_str(), "/cache/ab/mine.so", 6)}, 2), kLibraries, kOwn);
  EXPECT_EQ(found.kernels[0].owner, "candidate");
  EXPECT_EQ(found.own_share, 1);
}

TEST(FindOwners, CodeThatNoFileHoldsIsNotOwn) {
  for (const char* owner : {"memory", "several", "unknown"}) {
    EXPECT_EQ(find_owners(traced({kernel("_Z4minev", owner, 6)}, 1), kLibraries, kOwn).own_share,
              0);
  }
}

TEST(FindOwners, TakesAlikeKernelsOfSeveralBurstsTogether) {
  const auto one = kernel("_Z4minev", "/cache/ab/mine.so", 6);
  const auto found = find_owners(traced({one, one}, 4), kLibraries, kOwn);
  ASSERT_EQ(found.kernels.size(), 1U);
  EXPECT_EQ(found.kernels[0].launches, 1);
  EXPECT_EQ(found.kernels[0].time_us, 3);
}

TEST(FindOwners, AnswersForNoBurstThatWasDisturbed) {
  std::vector<TracedBatch> batches(3, traced({kernel("_Z4minev", "/cache/ab/mine.so", 6)}, 2)[0]);
  batches[1].kernels[0].time_us = 9;
  const auto found = find_owners(batches, kLibraries, kOwn);
  EXPECT_EQ(found.kernels[0].time_us, 3);
  EXPECT_EQ(found.kernels[0].launches, 1);
}

TEST(FindOwners, WhatRanInOneBurstCountsInFull) {
  std::vector<TracedBatch> batches(3, traced({kernel("_Z4minev", "/cache/ab/mine.so", 6)}, 2)[0]);
  batches[1].kernels.push_back(kernel("gemm", "/lib/libcublas.so", 54));
  const auto found = find_owners(batches, kLibraries, kOwn);
  EXPECT_EQ(found.own_share, 0.25);
  ASSERT_EQ(found.kernels.size(), 2U);
  EXPECT_DOUBLE_EQ(found.kernels[0].time_us, 9);
  EXPECT_EQ(found.kernels[1].time_us, 3);
}

TEST(FindOwners, LeavesCopiesAndFillsOutOfTheShare) {
  const auto found = find_owners(
      traced({kernel("[memset]", "runtime", 90), kernel("_Z4minev", "/cache/ab/mine.so", 10)}, 1),
      kLibraries, kOwn);
  EXPECT_EQ(found.own_share, 1);
  EXPECT_EQ(found.kernels[0].share, 0.9);
}

TEST(FindOwners, NothingIsOwnWhereNothingRan) {
  EXPECT_EQ(find_owners(traced({}, 1), kLibraries, kOwn).own_share, 0);
}

TEST(FindOwners, NotesWhatBeganLate) {
  TracedKernel late = kernel("_Z4minev", "/cache/ab/mine.so", 1);
  late.late = 1;
  EXPECT_TRUE(find_owners(traced({late}, 1), kLibraries, kOwn).is_late);
}

}  // namespace
}  // namespace mc::timing
