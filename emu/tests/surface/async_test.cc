// SPDX-License-Identifier: Apache-2.0
// <cuda/atomic>, <cuda/barrier>, <cuda/pipeline>, <cuda_pipeline.h>, <cuda/std/...>.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/bit>
#include <cuda/std/numbers>
#include <cuda/std/span>

#include "cooperative_groups.h"
#include "cuda_pipeline.h"
#include "kernel_test.h"

namespace {

using mc_emu_test::findings;
using mc_emu_test::launch_kernel;
using mc_emu_test::run;
using mc_emu_test::Vector;
using ::testing::HasSubstr;

void count_kernel(int* counts, float* sum) {
  cuda::atomic_ref<int, cuda::thread_scope_device> all(counts[0]);
  all.fetch_add(2, cuda::memory_order_relaxed);
  cuda::atomic_ref<int> most(counts[1]);
  most.fetch_max(static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
  cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
  int expected = 0;
  if (cuda::atomic_ref<int>(counts[2]).compare_exchange_strong(expected, 7)) ++counts[3];
}

TEST(CudaAtomic, UpdatesOverTheDevice) {
  Vector<int> counts(4, 0);
  Vector<float> sum(1, 0.0f);
  run(3, 64, count_kernel, counts.data(), sum.data());
  EXPECT_EQ(counts[0], 384);
  EXPECT_EQ(counts[1], 191);
  EXPECT_EQ(counts[2], 7);
  EXPECT_EQ(counts[3], 1);
  EXPECT_EQ(sum[0], 96.0f);
}

void barrier_kernel(int* y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int values[64];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (int round = 0; round < 3; ++round) {
    values[threadIdx.x] = static_cast<int>(threadIdx.x) + round;
    barrier.arrive_and_wait();
    y[threadIdx.x] = values[(threadIdx.x + 1) % 64];
    auto token = barrier.arrive();
    barrier.wait(static_cast<decltype(token)&&>(token));
  }
}

TEST(CudaBarrier, LetsAllGoOnTogether) {
  Vector<int> y(64);
  run(1, 64, barrier_kernel, y.data());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], (i + 1) % 64 + 2);
}

void barrier_copy_kernel(const int* x, int* y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int tile[64];
  const auto block = cooperative_groups::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, x, sizeof tile, barrier);
  barrier.arrive_and_wait();
  y[threadIdx.x] = tile[63 - threadIdx.x];
}

TEST(CudaBarrier, CompletesCopies) {
  Vector<int> x(64), y(64);
  for (int i = 0; i < 64; ++i) x[static_cast<size_t>(i)] = i;
  run(1, 64, barrier_copy_kernel, x.data(), y.data());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 63 - i);
}

// Two stages: tile s is copied while tile s - 1 is used.
void pipeline_kernel(const int* x, int* y, int stages) {
  __shared__ int tiles[2][32];
  auto pipe = cuda::make_pipeline();
  int sum = 0;
  for (int fetched = 0, used = 0; used < stages; ++used) {
    for (; fetched < stages && fetched < used + 2; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(&tiles[fetched % 2][threadIdx.x],
                         &x[fetched * 32 + static_cast<int>(threadIdx.x)],
                         cuda::aligned_size_t<4>(4), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    __syncthreads();
    sum += tiles[used % 2][31 - threadIdx.x];
    __syncthreads();
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}

TEST(CudaPipeline, HandsOverStages) {
  Vector<int> x(128), y(32);
  for (int i = 0; i < 128; ++i) x[static_cast<size_t>(i)] = i;
  run(1, 32, pipeline_kernel, x.data(), y.data(), 4);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 4 * (31 - i) + 32 * 6);
}

void group_pipeline_kernel(const int* x, int* y, int stages) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ int tiles[2][64];
  const auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int fetched = 0, used = 0; used < stages; ++used) {
    for (; fetched < stages && fetched < used + 2; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tiles[fetched % 2], x + fetched * 64, sizeof tiles[0], pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tiles[used % 2][63 - threadIdx.x];
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}

TEST(CudaPipeline, OfABlockHandsOverStages) {
  Vector<int> x(256), y(64);
  for (int i = 0; i < 256; ++i) x[static_cast<size_t>(i)] = i;
  run(1, 64, group_pipeline_kernel, x.data(), y.data(), 4);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 4 * (63 - i) + 64 * 6);
}

void primitives_kernel(const float4* x, float* y, int valid) {
  __shared__ float4 tile[32];
  const bool is_inside = static_cast<int>(threadIdx.x) < valid;
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[is_inside ? threadIdx.x : 0], 16,
                          is_inside ? 0 : 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  y[threadIdx.x] = tile[31 - threadIdx.x].y;
}

TEST(PipelinePrimitives, CopyAndFillWithZeros) {
  Vector<float4> x(20);
  Vector<float> y(32);
  for (int i = 0; i < 20; ++i)
    x[static_cast<size_t>(i)] = make_float4(0, static_cast<float>(i + 1), 0, 0);
  run(1, 32, primitives_kernel, x.data(), y.data(), 20);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(y[static_cast<size_t>(i)], 31 - i < 20 ? static_cast<float>(32 - i) : 0.0f);
  }
}

void early_kernel(const float* x, float* y) {
  __shared__ float tile[32];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(2);
  y[threadIdx.x] = tile[threadIdx.x];
}

TEST(PipelinePrimitives, ReadingTooEarlyIsFound) {
  Vector<float> x(32), y(32);
  launch_kernel(1, 32, early_kernel, x.data(), y.data());
  EXPECT_THAT(findings(), HasSubstr("uninitialised_shared"));
  mc_emu_reset();
}

TEST(CudaStd, HasBitsSpansAndNumbers) {
  EXPECT_EQ(cuda::std::popcount(0xF0u), 4);
  EXPECT_EQ(cuda::std::countl_zero(1u), 31);
  EXPECT_EQ(cuda::std::bit_ceil(33u), 64u);
  EXPECT_EQ(cuda::std::bit_cast<int>(1.0f), 0x3F800000);
  EXPECT_EQ(cuda::std::rotl(0x80000001u, 4), 0x18u);
  int values[] = {1, 2, 3};
  cuda::std::span<int> span(values);
  EXPECT_EQ(span.subspan(1).front(), 2);
  EXPECT_EQ(span.size(), 3u);
  EXPECT_FLOAT_EQ(cuda::std::numbers::pi_v<float>, 3.14159265f);
}

}  // namespace
