// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

using Launch = EmulationTest;
using ::testing::HasSubstr;

__global__ void mark(int* y) { *y = 1; }
__global__ void mark_large(int* y) {
  char* s = static_cast<char*>(::mc_emu::dynamic_shared());
  s[0] = 1;
  *y = s[0];
}

struct Refused {
  dim3 grid;
  dim3 block;
  size_t shared;
  cudaError_t error;
};

TEST_F(Launch, RefusesWhatAGpuRefusesAndDoesNotRun) {
  const Refused table[] = {
      {1, 1025, 0, cudaErrorInvalidConfiguration},
      {1, dim3(32, 33), 0, cudaErrorInvalidConfiguration},
      {1, dim3(1, 1, 65), 0, cudaErrorInvalidConfiguration},
      {1, 0, 0, cudaErrorInvalidConfiguration},
      {0, 1, 0, cudaErrorInvalidConfiguration},
      {dim3(1, 65536), 1, 0, cudaErrorInvalidConfiguration},
      {dim3(1, 1, 65536), 1, 0, cudaErrorInvalidConfiguration},
      {1, 1, 48 * 1024 + 1, cudaErrorInvalidValue},
  };
  for (const Refused& row : table) {
    Device<int> y(1);
    MC_LAUNCH(mark, row.grid, row.block, row.shared, y.get());
    EXPECT_EQ(cudaPeekAtLastError(), row.error);
    EXPECT_EQ(cudaGetLastError(), row.error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(mc_emu_sticky_error(), 0);
  }
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"launch_error\",\"kernel\":\"mark\""));
}

// The stand-in of `extern __shared__ unsigned char bytes[]` at file scope.
::mc_emu::DynamicShared<unsigned char> bytes;
__global__ void cast_shared(float* y) {
  float* first = (float*)bytes;
  float* second = reinterpret_cast<float*>(::mc_emu::decayed(bytes)) + 1;
  float* third = reinterpret_cast<float*>(::mc_emu::decayed(bytes + 8));
  *first = 1, *second = 2, *third = 3;
  for (int i = 0; i < 3; ++i) y[i] = ((float*)bytes)[i];
}

TEST_F(Launch, DynamicSharedMemoryAtFileScopeCanBeCast) {
  Device<float> y(3);
  MC_LAUNCH(cast_shared, 1, 1, 12, y.get());
  EXPECT_EQ(report(), "");
  EXPECT_EQ(y[2], 3);
}

TEST_F(Launch, LargeSharedMemoryNeedsAnAttribute) {
  Device<int> y(1);
  MC_LAUNCH(mark_large, 1, 1, 100 * 1024, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(
      cudaFuncSetAttribute(mark_large, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024),
      cudaSuccess);
  MC_LAUNCH(mark_large, 1, 1, 100 * 1024, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(y[0], 1);
  MC_LAUNCH(mark, 1, 1, 100 * 1024, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue) << "the attribute is the other kernel's";
  EXPECT_EQ(
      cudaFuncSetAttribute(mark_large, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024),
      cudaErrorInvalidValue);
}

// The rewriter's result for __launch_bounds__.
template <int kThreads>
__global__ void mark_bounded(int* y) {
  ::mc_emu::check_launch_bounds(kThreads, 2);
  y[0] = 1;
}

TEST_F(Launch, MoreThreadsThanTheBoundsAllowAreAnError) {
  Device<int> y(1);
  MC_LAUNCH(mark_bounded<128>, 1, dim3(32, 4), 0, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(y[0], 1);
  y[0] = 0;
  MC_LAUNCH(mark_bounded<128>, 4, 129, 0, y.get());
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(y[0], 0);
  EXPECT_THAT(report(), HasSubstr("\"kind\":\"launch_error\""));
}

template <int kBytes>
__global__ void mark_static(int* y) {
  __shared__ char s[kBytes];
  s[threadIdx.x] = 1;
  __syncthreads();
  y[0] = s[blockDim.x - 1];
}

TEST_F(Launch, StaticSharedMemoryCountsAsWell) {
  Device<int> y(1);
  MC_LAUNCH(mark_static<32768>, 1, 1, 16 * 1024, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  MC_LAUNCH(mark_static<32768>, 1, 1, 17 * 1024, y.get());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

__global__ void copy_by_value(float4 v, const float* x, float scale, float* y) {
  *y = (v.x + v.y + v.z + v.w) * scale + *x;
}

TEST_F(Launch, ConvertsArgumentsToTheKernelsParameters) {
  Device<float> x(1, 1.0f);
  Device<float> y(1);
  MC_LAUNCH(copy_by_value, 1, 1, 0, make_float4(1, 2, 3, 4), x.get(), 2, y.get());
  EXPECT_EQ(y[0], 21.0f);
}

TEST_F(Launch, ByPointerPassesTheSameArguments) {
  Device<float> x(1, 1.0f);
  Device<float> y(1);
  float4 v = make_float4(1, 2, 3, 4);
  const float* from = x.get();
  float scale = 2;
  float* to = y.get();
  void* arguments[] = {&v, &from, &scale, &to};
  EXPECT_EQ(cudaLaunchKernel(copy_by_value, dim3(1), dim3(1), arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(y[0], 21.0f);
}

__constant__ float table[4];
__device__ int counter;

__global__ void read_constant(float* y) {
  y[threadIdx.x] = table[threadIdx.x];
  if (threadIdx.x == 0) counter = 9;
}

TEST_F(Launch, SymbolsAreCopiedToAndFrom) {
  const float values[4] = {1, 2, 3, 4};
  int count = 0;
  Device<float> y(4);
  EXPECT_EQ(cudaMemcpyToSymbol(table, values, sizeof values), cudaSuccess);
  EXPECT_EQ(cudaMemcpyToSymbol(table, values, sizeof values + 1), cudaErrorInvalidValue);
  MC_LAUNCH(read_constant, 1, 4, 0, y.get());
  EXPECT_THAT(y.values(), ::testing::ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(cudaMemcpyFromSymbol(&count, counter, sizeof count), cudaSuccess);
  EXPECT_EQ(count, 9);
}

TEST_F(Launch, SchedulesGiveTheSameOrderForTheSameSeed) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<float> y(1);
    Device<float> z(1);
    const auto sum = [](float* out) { atomicAdd(out, 1.0f / static_cast<float>(threadIdx.x + 1)); };
    MC_LAUNCH(sum, 1, 1000, 0, y.get());
    MC_LAUNCH(sum, 1, 1000, 0, z.get());
    EXPECT_EQ(y[0], z[0]);
  }
}

TEST(Memory, OfAFileIsMappedBetweenInaccessiblePages) {
  const int fd = memfd_create("region", 0);
  ASSERT_EQ(ftruncate(fd, 8192), 0);
  float* p = static_cast<float*>(mc_emu_arena_map(fd, 8192 - 400, 400));
  ASSERT_NE(p, nullptr);
  p[99] = 5;
  float seen = 0;
  ASSERT_EQ(pread(fd, &seen, sizeof seen, 8192 - 4), 4);
  EXPECT_EQ(seen, 5.0f);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p + 100) % 4096, 0u);
  mc_emu_arena_release(p);
  close(fd);
}

TEST(Memory, IsFilledWithOnesAndAlignedToSixteen) {
  for (size_t size = 1; size < 10000; size = size * 3 + 1) {
    unsigned char* p = static_cast<unsigned char*>(mc_emu_arena_allocate(size));
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 16, 0u);
    EXPECT_EQ(p[0], 0xFF);
    EXPECT_EQ(p[size - 1], 0xFF);
    mc_emu_arena_release(p);
  }
  EXPECT_EQ(mc_emu_arena_allocate(size_t{1} << 60), nullptr);
}

}  // namespace
}  // namespace mc::emu::testing
