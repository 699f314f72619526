// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

using Barrier = EmulationTest;
using ::testing::Each;
using ::testing::HasSubstr;

__global__ void reverse(int* x) {
  __shared__ int s[256];
  s[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

TEST_F(Barrier, OrdersSharedMemoryUnderEverySchedule) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<int> x(512);
    for (int i = 0; i < 512; ++i) x[i] = i;
    MC_LAUNCH(reverse, 2, 256, 0, x.get());
    for (int i = 0; i < 512; ++i) ASSERT_EQ(x[i], i / 256 * 256 + 255 - i % 256);
  }
  EXPECT_EQ(report(), "");
}

__global__ void tree_sum(const int* x, int* y) {
  int* s = static_cast<int*>(::mc_emu::dynamic_shared());
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *y = s[0];
}

TEST_F(Barrier, MayStandInALoop) {
  Device<int> x(1024, 3);
  Device<int> y(1);
  MC_LAUNCH(tree_sum, 1, 1024, 1024 * sizeof(int), x.get(), y.get());
  EXPECT_EQ(y[0], 3072);
  EXPECT_EQ(report(), "");
}

__global__ void return_early(int* y, int n) {
  __shared__ int s[64];
  if (threadIdx.x >= static_cast<unsigned>(n)) return;
  s[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) *y += s[i];
  }
}

TEST_F(Barrier, DoesNotWaitForThreadsThatReturned) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<int> y(1);
    MC_LAUNCH(return_early, 1, 64, 0, y.get(), 37);
    EXPECT_EQ(y[0], 37);
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

__global__ void combine(int* y) {
  const int t = static_cast<int>(threadIdx.x);
  const int count = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t < 96);
  const int not_all = __syncthreads_and(t < 95);
  const int some = __syncthreads_or(t == 40);
  const int none = __syncthreads_or(t == 400);
  y[t] = count * 10000 + all * 1000 + not_all * 100 + some * 10 + none;
}

TEST_F(Barrier, CountsAndCombinesPredicates) {
  Device<int> y(96);
  MC_LAUNCH(combine, 1, 96, 0, y.get());
  EXPECT_THAT(y.values(), Each(32 * 10000 + 1010));
}

__global__ void diverge(int* y, int odd_way) {
  if (odd_way != 0 && threadIdx.x % 2 == 1) {
    __syncthreads();
    y[threadIdx.x] = 1;
  } else {
    y[threadIdx.x] = 2;
    __syncthreads();
  }
}

TEST_F(Barrier, OnDifferentLinesIsAFinding) {
  Device<int> y(64);
  MC_LAUNCH(diverge, 1, 64, 0, y.get(), 0);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(diverge, 1, 64, 0, y.get(), 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"divergent_barrier\",\"kernel\":\"diverge\""));
}

__global__ void wait_for_each_other(float* y) {
  if (threadIdx.x < 16) {
    y[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, 1.0f, 0);
  } else {
    __syncthreads();
  }
}

TEST_F(Barrier, AgainstAShuffleOfTheWholeWarpIsADeadlock) {
  Device<float> y(32);
  MC_LAUNCH(wait_for_each_other, 1, 32, 0, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"deadlock\""));
}

__global__ void coordinates(unsigned* y) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  __syncthreads();
  y[block * threads + thread] = block * threads + thread;
}

TEST_F(Barrier, KeepsCoordinatesInThreeDimensions) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<unsigned> y(2 * 3 * 5 * 4 * 2 * 3);
    MC_LAUNCH(coordinates, dim3(2, 3, 5), dim3(4, 2, 3), 0, y.get());
    for (unsigned i = 0; i < 720; ++i) ASSERT_EQ(y[i], i);
  }
}

}  // namespace
}  // namespace mc::emu::testing
