// SPDX-License-Identifier: Apache-2.0
// Warps of 128 threads, as GPUs of Moore Threads with the architectures mp_21 and mp_22 have them.
#include "cooperative_groups.h"
#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

namespace cg = cooperative_groups;
using ::testing::Each;
using ::testing::HasSubstr;

class LongWarp : public EmulationTest {
 protected:
  LongWarp() : EmulationTest(128) {}
};

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kLanes = 128;

__global__ void shuffle_all(int* y, int width) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = __shfl_sync(kAll, t, 3, width);
  y[kLanes + t] = __shfl_up_sync(kAll, t, 2, width);
  y[2 * kLanes + t] = __shfl_down_sync(kAll, t, 2, width);
  y[3 * kLanes + t] = __shfl_xor_sync(kAll, t, 1, width);
}

int expected_lane(int form, int lane, int width) {
  const int first = lane / width * width;
  const int wanted = form == 0   ? first + 3 % width
                     : form == 1 ? lane - 2
                     : form == 2 ? lane + 2
                                 : lane ^ 1;
  return wanted < first || wanted >= first + width ? lane : wanted;
}

TEST_F(LongWarp, ShufflesInSegmentsOfEveryWidth) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    for (int width = 2; width <= kLanes; width *= 2) {
      Device<int> y(4 * kLanes);
      MC_LAUNCH(shuffle_all, 1, kLanes, 0, y.get(), width);
      for (int i = 0; i < 4 * kLanes; ++i) {
        ASSERT_EQ(y[i], expected_lane(i / kLanes, i % kLanes, width)) << i << " " << width;
      }
    }
  }
}

__global__ void exchange_without_width(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = __shfl_sync(kAll, t, 0);
  y[2 * kLanes + t] = __shfl_xor_sync(kAll, t, 64);
}

TEST_F(LongWarp, TheWidthOfAShuffleIsTheWarpWhereNoneIsGiven) {
  Device<int> y(4 * kLanes);
  MC_LAUNCH(exchange_without_width, 1, 2 * kLanes, 0, y.get());
  for (int t = 0; t < 2 * kLanes; ++t) {
    EXPECT_EQ(y[t], t / kLanes * kLanes) << t;
    EXPECT_EQ(y[2 * kLanes + t], t ^ 64) << t;
  }
}

__global__ void sizes(int* y) {
  y[0] = warpSize;
  for (int lanes = warpSize; lanes > 1; lanes /= 2) ++y[1];
}

TEST_F(LongWarp, KernelsAndDevicePropertiesHaveTheSize) {
  Device<int> y(2, 0);
  MC_LAUNCH(sizes, 1, 1, 0, y.get());
  EXPECT_THAT(y.values(), ::testing::ElementsAre(128, 7));
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.warpSize, 128);
  int size = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&size, cudaDevAttrWarpSize, 0), cudaSuccess);
  EXPECT_EQ(size, 128);
}

__global__ void vote(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = __any_sync(kAll, t == 127) == 1 && __any_sync(kAll, t == 128) == 0 &&
         __all_sync(kAll, t < 128) == 1 && __all_sync(kAll, t < 127) == 0 &&
         __uni_sync(kAll, 1) == 1 && __uni_sync(kAll, t == 100) == 0;
}

TEST_F(LongWarp, VotesOfAllLanesCount) {
  Device<int> y(kLanes);
  MC_LAUNCH(vote, 1, kLanes, 0, y.get());
  EXPECT_THAT(y.values(), Each(1));
}

__global__ void masks(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  int all = 0;
  y[t] = __ballot_sync(kAll, t % 2) == 0xAAAAAAAAu && __ballot_sync(kAll, t >= 32) == 0 &&
         __match_any_sync(kAll, t / 48) == (t < 48 ? kAll : 0) && __activemask() == kAll &&
         __match_all_sync(kAll, 5, &all) == kAll && all == 1 &&
         __match_all_sync(kAll, t == 99, &all) == 0 && all == 0;
}

TEST_F(LongWarp, MasksThatAreReturnedHaveTheFirst32Lanes) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<int> y(kLanes);
    MC_LAUNCH(masks, 1, kLanes, 0, y.get());
    EXPECT_THAT(y.values(), Each(1));
  }
}

__global__ void reduce(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  y[0] = __reduce_add_sync(kAll, t);
  y[1] = __reduce_min_sync(kAll, -t);
  y[2] = __reduce_max_sync(kAll, t);
}

TEST_F(LongWarp, ReducesOverAllLanes) {
  Device<int> y(3);
  MC_LAUNCH(reduce, 1, kLanes, 0, y.get());
  EXPECT_THAT(y.values(), ::testing::ElementsAre(127 * 64, -127, 127));
}

__global__ void first_lanes_alone(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < 16) y[t] = __shfl_down_sync(0xFFFFu, t, 1, 16);
  __syncthreads();
}

TEST_F(LongWarp, APartialMaskNamesLanesOfTheFirst32) {
  Device<int> y(16);
  MC_LAUNCH(first_lanes_alone, 1, kLanes, 0, y.get());
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[14], 15);
  EXPECT_EQ(report(), "");
}

__global__ void masks_of_halves(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = __shfl_xor_sync(t % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u, t, 1);
}

TEST_F(LongWarp, APartialMaskOfALaterLaneIsAFinding) {
  Device<int> y(kLanes);
  MC_LAUNCH(masks_of_halves, 1, kLanes, 0, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_THAT(report(), HasSubstr("a mask that is not full names lanes 0 to 31"));
}

__global__ void a_quarter_goes_on(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < 32) y[t] = __shfl_down_sync(kAll, t, 1);
  __syncthreads();
}

TEST_F(LongWarp, AFullMaskWaitsForAllLanes) {
  Device<int> y(32);
  MC_LAUNCH(a_quarter_goes_on, 1, kLanes, 0, y.get());
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"deadlock\""));
  EXPECT_THAT(report(), HasSubstr("warps have 128 threads here"));
}

__global__ void pass_on_by_shared_memory(int* y, int distance) {
  __shared__ int s[2 * kLanes];
  const int t = static_cast<int>(threadIdx.x);
  s[t] = t;
  __syncwarp();
  y[t] = s[t ^ distance];
}

TEST_F(LongWarp, SynchronisedLanesDoNotRace) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<int> y(2 * kLanes);
    MC_LAUNCH(pass_on_by_shared_memory, 1, 2 * kLanes, 0, y.get(), 64);
  }
  EXPECT_EQ(report(), "");
}

TEST_F(LongWarp, LanesOfTwoWarpsRace) {
  Device<int> y(2 * kLanes);
  MC_LAUNCH(pass_on_by_shared_memory, 1, 2 * kLanes, 0, y.get(), 128);
  EXPECT_THAT(report(), HasSubstr("shared_race"));
}

__global__ void a_short_warp(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = __reduce_add_sync(kAll, 1);
}

TEST_F(LongWarp, TheLastWarpOfABlockMayBeShort) {
  Device<int> y(200);
  MC_LAUNCH(a_short_warp, 1, 200, 0, y.get());
  for (int t = 0; t < 200; ++t) EXPECT_EQ(y[t], t < kLanes ? kLanes : 72) << t;
}

__global__ void tiles(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const auto eight = cg::tiled_partition<8>(tile);
  if (t / 32 == 2) return;  // Tiles need nothing of each other.
  y[t] = tile.shfl(t, 0) == t / 32 * 32 && tile.shfl_xor(t, 16) == (t ^ 16) &&
         tile.ballot(t % 32 < 5) == 31u && tile.all(1) && !tile.any(t % 32 == 32) &&
         tile.match_any(t / 16) == 0xFFFFu << (t / 16 % 2 * 16) &&
         eight.shfl(t, 1) == t / 8 * 8 + 1;
  tile.sync();
}

TEST_F(LongWarp, TilesOf32AreGroupsOfTheirOwn) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<int> y(kLanes, 1);
    MC_LAUNCH(tiles, 1, kLanes, 0, y.get());
    EXPECT_THAT(y.values(), Each(1));
  }
  EXPECT_EQ(report(), "");
}

__global__ void coalesced(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  if (t % 4 != 1) return;
  const cg::coalesced_group group = cg::coalesced_threads();
  y[t] = group.size() == 8 && group.thread_rank() == static_cast<unsigned>(t % 32 / 4) &&
         group.shfl(t, 0) == t / 32 * 32 + 1 && group.ballot(1) == 0xFFu;
}

TEST_F(LongWarp, CoalescedThreadsAreLanesOf32) {
  Device<int> y(kLanes, 0);
  MC_LAUNCH(coalesced, 1, kLanes, 0, y.get());
  for (int t = 0; t < kLanes; ++t) EXPECT_EQ(y[t], t % 4 == 1) << t;
}

TEST(WarpSize, IsRefusedWhereNoGpuHasIt) {
  const McEmuOptions options{sizeof(McEmuOptions), -1, 1, 0, 0, 64};
  EXPECT_EQ(mc_emu_init(&options), EINVAL);
}

}  // namespace
}  // namespace mc::emu::testing
