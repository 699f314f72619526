// SPDX-License-Identifier: Apache-2.0
// Grid barriers: all blocks of a cooperative launch, with shared memory of their own.
#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

using Cooperative = EmulationTest;
using ::testing::HasSubstr;

// Each step replaces x by the sum of two neighbours, in place; shared memory keeps the step's
// value.
__global__ void step_in_place(int* x, int n, int steps) {
  __shared__ int kept[32];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int step = 0; step < steps; ++step) {
    if (i < n) kept[threadIdx.x] = x[i] + x[(i + 1) % n];
    mc_emu_grid_barrier(__LINE__);
    if (i < n) x[i] = kept[threadIdx.x];
    mc_emu_grid_barrier(__LINE__);
  }
}

template <class... P>
cudaError_t launch_cooperatively(void (*kernel)(P...), dim3 grid, dim3 block, P... arguments) {
  void* pointers[] = {&arguments...};
  return cudaLaunchCooperativeKernel(kernel, grid, block, pointers, 0, nullptr);
}

TEST_F(Cooperative, GridBarriersOrderBlocksAndKeepTheirSharedMemory) {
  constexpr int kSize = 150;
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    std::vector<int> expected(kSize);
    for (int i = 0; i < kSize; ++i) expected[i] = i;
    Device<int> x(expected);
    for (int step = 0; step < 3; ++step) {
      std::vector<int> next(kSize);
      for (int i = 0; i < kSize; ++i) next[i] = expected[i] + expected[(i + 1) % kSize];
      expected = next;
    }
    EXPECT_EQ(launch_cooperatively(step_in_place, 5, 32, x.get(), kSize, 3), cudaSuccess);
    EXPECT_EQ(x.values(), expected);
  }
  EXPECT_EQ(report(), "");
}

__global__ void one_block_stays_away(int* x) {
  if (blockIdx.x == 1) return;
  mc_emu_grid_barrier(__LINE__);
  x[0] = 1;
}

TEST_F(Cooperative, ABlockThatNeverArrivesIsADeadlock) {
  Device<int> x(1);
  EXPECT_EQ(launch_cooperatively(one_block_stays_away, 3, 32, x.get()), cudaErrorLaunchFailure);
  EXPECT_EQ(x[0], 0);
  EXPECT_THAT(report(), HasSubstr("1 of 3 blocks never reach"));
}

TEST_F(Cooperative, AGridBarrierNeedsACooperativeLaunch) {
  Device<int> x(150, 1);
  MC_LAUNCH(step_in_place, 5, 32, 0, x.get(), 150, 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_THAT(report(), HasSubstr("not launched cooperatively"));
}

TEST_F(Cooperative, TheGridMustBeResident) {
  Device<int> x(1);
  EXPECT_EQ(launch_cooperatively(one_block_stays_away, 108 * 2 + 1, 1024, x.get()),
            cudaErrorCooperativeLaunchTooLarge);
}

}  // namespace
}  // namespace mc::emu::testing
