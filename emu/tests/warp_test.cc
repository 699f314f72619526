// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

using Warp = EmulationTest;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr unsigned kAll = 0xFFFFFFFFu;

template <class T>
__global__ void shuffle_all(T* y, int width) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = __shfl_sync(kAll, static_cast<T>(t), 3, width);
  y[32 + t] = __shfl_up_sync(kAll, static_cast<T>(t), 2, width);
  y[64 + t] = __shfl_down_sync(kAll, static_cast<T>(t), 2, width);
  y[96 + t] = __shfl_xor_sync(kAll, static_cast<T>(t), 1, width);
}

// The lane that a lane reads by CUDA's documentation.
int expected_lane(int form, int lane, int width) {
  const int first = lane / width * width;
  const int wanted = form == 0   ? first + 3 % width
                     : form == 1 ? lane - 2
                     : form == 2 ? lane + 2
                                 : lane ^ 1;
  return wanted < first || wanted >= first + width ? lane : wanted;
}

template <class T>
void check_shuffles() {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    for (int width = 2; width <= 32; width *= 2) {
      Device<T> y(128);
      MC_LAUNCH(shuffle_all<T>, 1, 32, 0, y.get(), width);
      for (int i = 0; i < 128; ++i) {
        ASSERT_EQ(y[i], static_cast<T>(expected_lane(i / 32, i % 32, width))) << i << " " << width;
      }
    }
  }
}

TEST_F(Warp, ShufflesWordsInSegmentsOfEveryWidth) { check_shuffles<int>(); }
TEST_F(Warp, ShufflesFloats) { check_shuffles<float>(); }
TEST_F(Warp, ShufflesDoubles) { check_shuffles<double>(); }
TEST_F(Warp, ShufflesLongLongs) { check_shuffles<unsigned long long>(); }

__global__ void halves(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < 16) {
    y[t] = __shfl_down_sync(0x0000FFFFu, t, 1, 16);
  } else {
    y[t] = __shfl_up_sync(0xFFFF0000u, t, 1, 16);
  }
  __syncwarp();
  y[t] = __shfl_xor_sync(kAll, y[t], 16);
}

TEST_F(Warp, PartialMasksInBothBranchesDoNotMix) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<int> y(32);
    MC_LAUNCH(halves, 1, 32, 0, y.get());
    for (int t = 0; t < 32; ++t) {
      const int other = t ^ 16;
      const int was = other < 16 ? (other == 15 ? 15 : other + 1) : (other == 16 ? 16 : other - 1);
      ASSERT_EQ(y[t], was) << t;
    }
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

__global__ void first_warp_only(int* y) {
  __shared__ int s[4];
  const int t = static_cast<int>(threadIdx.x);
  const unsigned sum = __reduce_add_sync(kAll, static_cast<unsigned>(t));
  if (t % 32 == 0) s[t / 32] = static_cast<int>(sum);
  __syncthreads();
  if (t < 32) {
    int v = t < 4 ? s[t] : 0;
    for (int delta = 16; delta > 0; delta /= 2) v += __shfl_down_sync(kAll, v, delta);
    if (t == 0) *y = v;
  }
}

TEST_F(Warp, OneWarpMayGoOnAlone) {
  Device<int> y(1);
  MC_LAUNCH(first_warp_only, 1, 128, 0, y.get());
  EXPECT_EQ(y[0], 127 * 128 / 2);
  EXPECT_EQ(report(), "");
}

__global__ void vote(unsigned* y) {
  const int t = static_cast<int>(threadIdx.x);
  const unsigned odd = __ballot_sync(kAll, t % 2);
  const int any = __any_sync(kAll, t == 31);
  const int all = __all_sync(kAll, t < 32);
  const int not_all = __all_sync(kAll, t < 31);
  y[t] = odd == 0xAAAAAAAAu && any == 1 && all == 1 && not_all == 0;
}

TEST_F(Warp, Votes) {
  Device<unsigned> y(32);
  MC_LAUNCH(vote, 1, 32, 0, y.get());
  EXPECT_THAT(y.values(), Each(1u));
}

__global__ void match(unsigned* y) {
  const int t = static_cast<int>(threadIdx.x);
  int all = 7;
  y[t] = __match_any_sync(kAll, t / 8);
  const unsigned same = __match_all_sync(kAll, 5.0, &all);
  y[32 + t] = same == kAll && all == 1;
  const unsigned differ = __match_all_sync(kAll, t, &all);
  y[64 + t] = differ == 0 && all == 0;
}

TEST_F(Warp, MatchesEqualValues) {
  Device<unsigned> y(96);
  MC_LAUNCH(match, 1, 32, 0, y.get());
  for (unsigned t = 0; t < 32; ++t) EXPECT_EQ(y[t], 0xFFu << (t / 8 * 8));
  for (unsigned t = 32; t < 96; ++t) EXPECT_EQ(y[t], 1u);
}

__global__ void reduce(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  y[0] = __reduce_add_sync(kAll, t - 16);
  y[1] = __reduce_min_sync(kAll, t - 16);
  y[2] = __reduce_max_sync(kAll, t - 16);
  y[3] = static_cast<int>(__reduce_or_sync(kAll, 1u << t) == kAll);
  y[4] = static_cast<int>(__reduce_and_sync(kAll, ~(1u << t)));
  y[5] = static_cast<int>(__reduce_xor_sync(kAll, static_cast<unsigned>(t)));
}

TEST_F(Warp, Reduces) {
  Device<int> y(6);
  MC_LAUNCH(reduce, 1, 32, 0, y.get());
  EXPECT_THAT(y.values(), ::testing::ElementsAre(-16, -16, 15, 1, 0, 0));
}

__global__ void ask_who_is_here(unsigned* y) {
  if (threadIdx.x % 4 == 0) y[threadIdx.x] = __activemask();
}

TEST_F(Warp, ActiveMaskNamesTheLanesOfTheBranch) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<unsigned> y(32);
    MC_LAUNCH(ask_who_is_here, 1, 32, 0, y.get());
    for (unsigned t = 0; t < 32; t += 4) ASSERT_EQ(y[t], 0x11111111u);
  }
}

__global__ void sum_of_lanes_that_stay(float* y, int n) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= n) return;
  const unsigned mask = (1u << n) - 1;
  float v = 1;
  for (int delta = 16; delta > 0; delta /= 2) {
    const float other = __shfl_down_sync(mask, v, delta);
    if (t + delta < n) v += other;
  }
  if (t == 0) *y = v;
}

TEST_F(Warp, LanesThatReturnedAreNotWaitedFor) {
  Device<float> y(1);
  MC_LAUNCH(sum_of_lanes_that_stay, 1, 32, 0, y.get(), 13);
  EXPECT_EQ(y[0], 13.0f);
}

__global__ void read_from_nobody(float* y) {
  if (threadIdx.x < 8) y[threadIdx.x] = __shfl_down_sync(0xFFu, 1.0f, 4);
}

TEST_F(Warp, AValueFromALaneThatIsNotThereIsPoison) {
  Device<float> y(8);
  MC_LAUNCH(read_from_nobody, 1, 32, 0, y.get());
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_TRUE(std::isnan(y[7]));
}

__global__ void forget_half(int* y) {
  if (threadIdx.x < 16) y[threadIdx.x] = __shfl_sync(kAll, 1, 0);
  __syncwarp();
}

TEST_F(Warp, AMaskThatNamesLanesWhichDoSomethingElseIsAFinding) {
  Device<int> y(32);
  MC_LAUNCH(forget_half, 1, 32, 0, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"divergent_barrier\""));
}

}  // namespace
}  // namespace mc::emu::testing
