// SPDX-License-Identifier: Apache-2.0
// Each kind of finding: a kernel that has it, and the same kernel without.
#include <csignal>

#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

using Findings = EmulationTest;
using ::testing::HasSubstr;
using ::testing::Not;

__global__ void copy(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i];
}

TEST_F(Findings, ACrashOfTheHostIsNoAccessOfAKernel) {
  EXPECT_EXIT(
      {
        volatile int* nowhere = reinterpret_cast<int*>(8);
        *nowhere = 1;
      },
      ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"host_crash\""));
}

TEST_F(Findings, AReadPastTheEndStopsTheKernelAndSticks) {
  Device<float> x(100);
  Device<float> y(200);
  MC_LAUNCH(copy, 4, 32, 0, x.get(), y.get(), 100);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(copy, 4, 32, 0, x.get(), y.get(), 101);
  EXPECT_EQ(mc_emu_sticky_error(), cudaErrorIllegalAddress);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"out_of_bounds_read\",\"kernel\":\"copy\","
                                  "\"block\":[3,0,0],\"thread\":[4,0,0]"));
  EXPECT_THAT(report(), HasSubstr("4-byte access at byte 400 of a buffer of 400 bytes"));
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&y), 0), cudaErrorIllegalAddress);
}

TEST_F(Findings, AWritePastTheEndIsAFinding) {
  Device<float> x(200);
  Device<float> y(100);
  MC_LAUNCH(copy, 4, 32, 0, x.get(), y.get(), 101);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"out_of_bounds_write\""));
}

TEST_F(Findings, AnAccessBeforeTheBeginningIsAFinding) {
  Device<float> x(100);
  Device<float> y(100);
  MC_LAUNCH(copy, 1, 32, 0, x.get() - 1, y.get(), 32);
  EXPECT_THAT(report(), HasSubstr("4 bytes before a buffer of 400 bytes"));
}

__global__ void throw_at(int index) {
  if (static_cast<int>(threadIdx.x) == index) std::__throw_out_of_range("thrown in a kernel");
}

// Thrown by this program's C++ library, caught by the emulator's own copy of it.
TEST_F(Findings, AnExceptionThatLeavesAKernelIsAFinding) {
  for (int round = 0; round < 3; ++round) {
    mc_emu_reset();
    MC_LAUNCH(throw_at, 2, 64, 0, -1);
    EXPECT_EQ(mc_emu_sticky_error(), cudaSuccess);
    MC_LAUNCH(throw_at, 2, 64, 0, 33);
    EXPECT_EQ(mc_emu_sticky_error(), cudaErrorLaunchFailure);
    EXPECT_THAT(report(), HasSubstr("a C++ exception left the kernel"));
  }
}

__global__ void read_address(const float* x, float* y) { *y = *x; }

TEST_F(Findings, HostMemoryIsOutOfBounds) {
  Device<float> y(1);
  const std::vector<float> on_the_heap(1);
  const float on_the_stack = 0;
  for (const float* x : {on_the_heap.data(), &on_the_stack}) {
    mc_emu_reset();
    MC_LAUNCH(read_address, 1, 1, 0, x, y.get());
    EXPECT_EQ(mc_emu_sticky_error(), cudaErrorIllegalAddress);
    EXPECT_THAT(report(), HasSubstr("access to host memory"));
  }
}

struct Weights {
  float values[4];
  Weights() = default;
  Weights(const Weights& other) { std::copy(other.values, other.values + 4, values); }
};
__global__ void read_parameters(Weights weights, float* y) { *y = weights.values[threadIdx.x]; }

TEST_F(Findings, ParametersByValueAreTheKernelsOwn) {
  Device<float> y(1);
  Weights weights;
  weights.values[0] = 3;
  MC_LAUNCH(read_parameters, 1, 1, 0, weights, y.get());
  EXPECT_EQ(y[0], 3.0f);
  EXPECT_EQ(report(), "");
}

TEST_F(Findings, ANullPointerIsAFindingAndNotADeath) {
  Device<float> y(1);
  MC_LAUNCH(read_address, 1, 1, 0, static_cast<const float*>(nullptr), y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"out_of_bounds_read\""));
}

TEST_F(Findings, ReleasedMemoryIsAFinding) {
  float* x = nullptr;
  ASSERT_EQ(cudaMalloc(&x, 400), cudaSuccess);
  Device<float> y(1);
  cudaFree(x);
  MC_LAUNCH(read_address, 1, 1, 0, x, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
}

__global__ void copy_vectors(const float* x, float* y) {
  reinterpret_cast<double*>(y)[threadIdx.x] = reinterpret_cast<const double*>(x)[threadIdx.x];
}

TEST_F(Findings, AMisalignedVectorIsAFinding) {
  Device<float> x(64);
  Device<float> y(64);
  MC_LAUNCH(copy_vectors, 1, 16, 0, x.get(), y.get());
  EXPECT_EQ(report(), "");
  MC_LAUNCH(copy_vectors, 1, 16, 0, x.get() + 1, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorMisalignedAddress);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"misaligned\""));
}

template <bool kWaits>
__global__ void neighbour(int* y) {
  __shared__ int s[64];
  s[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (kWaits) __syncthreads();
  y[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}

TEST_F(Findings, AMissingBarrierIsARaceOrAnUninitialisedReadUnderEverySchedule) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_reset();
    mc_emu_set_schedule(schedule);
    Device<int> y(64);
    const std::string before = report();
    MC_LAUNCH(neighbour<true>, 1, 64, 0, y.get());
    EXPECT_EQ(report(), before);
    MC_LAUNCH(neighbour<false>, 1, 64, 0, y.get());
    EXPECT_GT(report().size(), before.size()) << schedule;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  EXPECT_THAT(report(), HasSubstr("shared array 's'"));
}

template <bool kWaits>
__global__ void rotate_in_place(int* y, int steps) {
  __shared__ int s[64];
  s[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  for (int i = 0; i < steps; ++i) {
    const int next = s[(threadIdx.x + 1) % 64];
    if (kWaits) __syncthreads();
    s[threadIdx.x] = next;
    __syncthreads();
  }
  y[threadIdx.x] = s[threadIdx.x];
}

TEST_F(Findings, AWriteToWhatAnotherThreadReadIsARace) {
  Device<int> y(64);
  MC_LAUNCH(rotate_in_place<true>, 1, 64, 0, y.get(), 5);
  EXPECT_EQ(report(), "");
  EXPECT_EQ(y[0], 5);
  MC_LAUNCH(rotate_in_place<false>, 1, 64, 0, y.get(), 5);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"shared_race\""));
  EXPECT_THAT(report(), Not(HasSubstr(" at pc ")));
}

__global__ void all_write(int* y, int same) {
  __shared__ int s;
  s = same != 0 ? 7 : static_cast<int>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = s;
}

TEST_F(Findings, WritesOfTheSameValueAreNoRace) {
  Device<int> y(64);
  MC_LAUNCH(all_write, 1, 64, 0, y.get(), 1);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(all_write, 1, 64, 0, y.get(), 0);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"shared_race\""));
  EXPECT_THAT(report(), Not(HasSubstr("\"other_pc\":0,")));  // One line writes for both.
}

__global__ void neighbouring_bytes(unsigned char* y) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}

TEST_F(Findings, ThreadsThatShareAWordButNoByteAreNoRace) {
  Device<unsigned char> y(64);
  MC_LAUNCH(neighbouring_bytes, 3, 64, 0, y.get());
  EXPECT_EQ(report(), "");
  EXPECT_EQ(y[0], 63);
}

template <bool kSyncs>
__global__ void within_warp(int* y) {
  __shared__ int s[32];
  s[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (kSyncs) __syncwarp();
  y[threadIdx.x] = s[threadIdx.x ^ 1];
}

TEST_F(Findings, WarpSynchronousCodeNeedsSyncwarpAndNoMore) {
  Device<int> y(32);
  MC_LAUNCH(within_warp<true>, 4, 32, 0, y.get());
  EXPECT_EQ(report(), "");
  MC_LAUNCH(within_warp<false>, 4, 32, 0, y.get());
  EXPECT_THAT(report(), Not(HasSubstr("global")));
  EXPECT_NE(report(), "");
}

__global__ void use_uninitialised(float* y, int n) {
  __shared__ float s[32];
  if (threadIdx.x < static_cast<unsigned>(n)) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[31 - threadIdx.x];
}

TEST_F(Findings, UninitialisedSharedMemoryIsAFindingAndReadsAsNan) {
  Device<float> y(32);
  MC_LAUNCH(use_uninitialised, 1, 32, 0, y.get(), 32);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(use_uninitialised, 1, 32, 0, y.get(), 31);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"uninitialised_shared\""));
  EXPECT_TRUE(std::isnan(y[0]));
}

struct Constructed {
  Constructed() : value(3) {}
  int value;
};

__global__ void construct_in_shared(int* y) {
  __shared__ Constructed s[32];
  s[threadIdx.x].value = 1;
  y[threadIdx.x] = s[threadIdx.x].value;
}

TEST_F(Findings, ConstructorsOfSharedVariablesDoNotRun) {
  Device<int> y(32);
  MC_LAUNCH(construct_in_shared, 2, 32, 0, y.get());
  EXPECT_EQ(report(), "");
  EXPECT_THAT(y.values(), ::testing::Each(1));
}

__global__ void leave_behind(int* y, int writes) {
  __shared__ int s[32];
  if (writes != 0 || blockIdx.x == 0) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}

TEST_F(Findings, WhatAnEarlierBlockLeftInSharedMemoryIsUninitialised) {
  Device<int> y(32);
  MC_LAUNCH(leave_behind, 8, 32, 0, y.get(), 1);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(leave_behind, 8, 32, 0, y.get(), 0);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"uninitialised_shared\""));
}

__global__ void add_without_atomic(int* y) { *y += 1; }

TEST_F(Findings, PlainUpdatesOfOneCellByManyBlocksAreAGlobalRace) {
  Device<int> y(1);
  MC_LAUNCH(add_without_atomic, 1, 1, 0, y.get());
  EXPECT_EQ(report(), "");
  MC_LAUNCH(add_without_atomic, 64, 1, 0, y.get());
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"global_race\""));
}

__global__ void set_flag(int* y) { *y = 1; }

TEST_F(Findings, PlainWritesOfOneValueToOneCellAreNoRace) {
  Device<int> y(1);
  MC_LAUNCH(set_flag, 64, 64, 0, y.get());
  EXPECT_EQ(report(), "");
}

__global__ void halves_of_words(unsigned short* y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<unsigned short>(threadIdx.x);
}

TEST_F(Findings, TwoByteElementsOfOneWordAreNoGlobalRace) {
  Device<unsigned short> y(96);
  MC_LAUNCH(halves_of_words, 3, 32, 0, y.get());
  MC_LAUNCH(halves_of_words, 32, 3, 0, y.get());
  EXPECT_EQ(report(), "");
}

__global__ void shift_in_place(int* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 < n) y[i] = y[i + 1] + 1;
}

TEST_F(Findings, ReadingWhatAnotherBlockWritesIsAGlobalRaceInSomeOrder) {
  Device<int> y(128);
  mc_emu_set_schedule(1);
  MC_LAUNCH(shift_in_place, 4, 32, 0, y.get(), 128);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"global_race\""));
}

__global__ void through_global(int* y) {
  y[threadIdx.x] = 1;
  __syncthreads();
  y[64 + threadIdx.x] = y[63 - threadIdx.x];
}

TEST_F(Findings, ABlockMayPassValuesThroughDeviceMemory) {
  Device<int> y(128);
  MC_LAUNCH(through_global, 1, 64, 0, y.get());
  EXPECT_EQ(report(), "");
}

__global__ void dynamic_overflow(float* y, int n) {
  float* s = static_cast<float*>(::mc_emu::dynamic_shared());
  s[threadIdx.x] = 0;
  __syncthreads();
  y[threadIdx.x] = s[(threadIdx.x + 1) % static_cast<unsigned>(n)];
}

TEST_F(Findings, DynamicSharedMemoryHasExactBounds) {
  Device<float> y(33);
  MC_LAUNCH(dynamic_overflow, 1, 33, 33 * sizeof(float), y.get(), 33);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(dynamic_overflow, 1, 33, 33 * sizeof(float), y.get(), 34);
  EXPECT_THAT(report(), HasSubstr("byte 132 of dynamic shared memory of 132 bytes"));
}

__global__ void check_index(int i, int n) { assert(i < n); }

TEST_F(Findings, AFailedAssertionNamesItself) {
  MC_LAUNCH(check_index, 1, 1, 0, 1, 2);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(check_index, 1, 1, 0, 2, 2);
  EXPECT_EQ(cudaGetLastError(), cudaErrorAssert);
  EXPECT_THAT(report(), HasSubstr("assertion `i < n' failed"));
}

__global__ void trap() { __trap(); }
__global__ void divide(int* y, int d) { *y = 5 / d; }

TEST_F(Findings, TrapsAndDivisionsByZeroEndTheKernel) {
  MC_LAUNCH(trap, 1, 1, 0);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  mc_emu_reset();
  Device<int> y(1);
  MC_LAUNCH(divide, 1, 1, 0, y.get(), 0);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_THAT(report(), HasSubstr("division by zero"));
}

__global__ void recurse(int* y, int depth) {
  volatile char frame[1024];
  frame[depth % 1024] = 1;
  if (depth > 0) recurse(y, depth - 1);
  *y = frame[depth % 1024];
}

TEST_F(Findings, AStackOverflowIsAFinding) {
  Device<int> y(1);
  MC_LAUNCH(recurse, 1, 1, 0, y.get(), 10);
  EXPECT_EQ(report(), "");
  MC_LAUNCH(recurse, 1, 1, 0, y.get(), 100000);
  EXPECT_THAT(report(), HasSubstr("stack of a thread overflowed"));
}

TEST_F(Findings, TheSameKindAtTheSamePlaceIsWrittenOnce) {
  Device<int> y(1);
  std::string first;
  for (int i = 0; i < 3; ++i) {
    MC_LAUNCH(add_without_atomic, 64, 1, 0, y.get());
    if (i == 0) first = report();
  }
  EXPECT_NE(first, "");
  EXPECT_EQ(report(), first);
}

}  // namespace
}  // namespace mc::emu::testing
