// SPDX-License-Identifier: Apache-2.0
#include "timing/provenance.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mc::timing {
namespace {

worker::Kernel kernel(const char* name, const char* owner, double us) {
  return {.name = name,
          .owner = owner,
          .launches = 2,
          .us = us,
          .grid = {4, 1, 1},
          .block = {128, 1, 1},
          .registers = 32,
          .shared_bytes = 0};
}

const std::vector<OwnKernel> kOwn = {{"_Z4minev", 12}};

TEST(FindOwners, FindsTheCandidatesKernelsLongestFirst) {
  const auto found = find_owners(
      {kernel("_Z4minev", "", 6), kernel("_Z4copyv", "/lib/libtorch_cuda.so", 2)}, kOwn);
  ASSERT_EQ(found.kernels.size(), 2u);
  EXPECT_EQ(found.kernels[0].owner, "candidate");
  EXPECT_EQ(found.kernels[0].spill_bytes, 12);
  EXPECT_EQ(found.kernels[0].launches, 2);
  EXPECT_EQ(found.kernels[0].time_us, 6);
  EXPECT_EQ(found.kernels[0].share, 0.75);
  EXPECT_GT(found.kernels[0].occupancy, 0);
  EXPECT_EQ(found.kernels[1].owner, "libtorch_cuda.so");
  EXPECT_EQ(found.own_share, 0.75);
}

TEST(FindOwners, AKernelOfALibraryIsNotOwnWhateverItsName) {
  const auto found = find_owners({kernel("_Z4minev", "/lib/mine.so", 6)}, kOwn);
  EXPECT_EQ(found.kernels[0].owner, "mine.so");
  EXPECT_EQ(found.kernels[0].spill_bytes, 0);
  EXPECT_EQ(found.own_share, 0);
}

TEST(FindOwners, CopiesAndFillsHaveNoOwner) {
  const auto found =
      find_owners({kernel("[memcpy]", "runtime", 30), kernel("[memset]", "runtime", 30),
                   kernel("k", "", 20), kernel("[graph]", "", 20)},
                  kOwn);
  EXPECT_EQ(found.own_share, 1);
  EXPECT_EQ(found.kernels.back().share, 0.2);
}

TEST(FindOwners, WithoutKernelsTheShareIsZero) { EXPECT_EQ(find_owners({}, kOwn).own_share, 0); }

}  // namespace
}  // namespace mc::timing
