// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_warps.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/file.h"

namespace mc::eval {
namespace {

TEST(WarpsOf128, HaveFunctionsOfTheSameLength) {
  EXPECT_EQ(with_warps_of_128("y = __shfl_xor_sync(m, x, 1); __syncwarp();"),
            "y = mcshfl_xor_sync(m, x, 1); mcsyncwarp();");
  EXPECT_EQ(with_warps_of_128("#define VOTE(x) __ballot_sync(~0u, x)\n"),
            "#define VOTE(x) mcballot_sync(~0u, x)\n");
}

TEST(WarpsOf128, LeaveOtherWordsAlone) {
  const std::string source =
      "__syncthreads(); p.warpSize; my__shfl_sync; __shfl_sync_all(1); // __shfl_sync\n"
      "\"__syncwarp\"; tile.shfl(x, 0);";
  EXPECT_EQ(with_warps_of_128(source), source);
}

TEST(WarpsOf128, HaveTheirNamesOfMusaInMessages) {
  EXPECT_EQ(without_warps_of_128("no instance of \"mcshfl_up_sync\" fits; see mcsyncwarp, mcshfl"),
            "no instance of \"__shfl_up_sync\" fits; see __syncwarp, mcshfl");
}

// The header that nvcc gets has a function for each name that is changed.
TEST(WarpsOf128, AreDefinedInTheHeader) {
  const std::filesystem::path root = MC_SOURCE_DIR;
  const std::string header = read_file(root / "device/musa/warps_of_128.cuh", 1 << 20).value();
  for (const char* name :
       {"shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "syncwarp", "activemask",
        "ballot_sync", "any_sync", "all_sync", "uni_sync", "match_any_sync", "match_all_sync",
        "reduce_add_sync", "reduce_min_sync", "reduce_max_sync", "reduce_and_sync",
        "reduce_or_sync", "reduce_xor_sync"}) {
    EXPECT_EQ(with_warps_of_128(std::string("__") + name), std::string("mc") + name);
    const std::string ours = std::string("mc") + name;
    EXPECT_TRUE(header.find(" " + ours + "(") != std::string::npos ||
                header.find("(" + ours + ", ") != std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace mc::eval
