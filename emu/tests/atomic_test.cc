// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

using Atomic = EmulationTest;

template <class T>
__global__ void add_one(T* y) {
  atomicAdd(y, static_cast<T>(1));
}

template <class T>
T count_threads() {
  Device<T> y(1);
  MC_LAUNCH(add_one<T>, 40, 256, 0, y.get());
  return y[0];
}

TEST_F(Atomic, AddCountsAllThreadsOfBlocksThatRunAtOnce) {
  EXPECT_EQ(count_threads<int>(), 10240);
  EXPECT_EQ(count_threads<unsigned>(), 10240u);
  EXPECT_EQ(count_threads<unsigned long long>(), 10240u);
  EXPECT_EQ(count_threads<float>(), 10240.0f);
  EXPECT_EQ(count_threads<double>(), 10240.0);
  EXPECT_EQ(report(), "");
}

__global__ void all_forms(int* y, unsigned* u) {
  const int t = static_cast<int>(threadIdx.x);
  atomicSub(&y[0], t);
  atomicMin(&y[1], t - 20);
  atomicMax(&y[2], t - 20);
  atomicAnd(&y[3], ~(1 << t));
  atomicOr(&y[4], 1 << t);
  atomicXor(&y[5], t);
  atomicInc(&u[0], 9u);
  atomicDec(&u[1], 9u);
}

TEST_F(Atomic, FormsDoWhatTheirNamesSay) {
  Device<int> y(std::vector<int>{0, 0, 0, -1, 0, 0});
  Device<unsigned> u(2);
  MC_LAUNCH(all_forms, 1, 32, 0, y.get(), u.get());
  EXPECT_THAT(y.values(), ::testing::ElementsAre(-496, -20, 11, 0, -1, 0));
  EXPECT_THAT(u.values(), ::testing::ElementsAre(32u % 10, 8u));
}

__global__ void exchange(int* y, unsigned long long* w) {
  if (atomicExch(&y[0], 5) == 4 && atomicCAS(&y[1], 7, 8) == 7 && atomicCAS(&y[1], 7, 9) == 8 &&
      atomicCAS(w, 1ull, 2ull) == 1) {
    y[2] = 1;
  }
}

TEST_F(Atomic, ExchangesReturnWhatWasThere) {
  Device<int> y(std::vector<int>{4, 7, 0});
  Device<unsigned long long> w(1, 1);
  MC_LAUNCH(exchange, 1, 1, 0, y.get(), w.get());
  EXPECT_THAT(y.values(), ::testing::ElementsAre(5, 8, 1));
  EXPECT_EQ(w[0], 2u);
}

__global__ void count_under_lock(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *count += 1;
  __threadfence();
  atomicExch(lock, 0);
}

TEST_F(Atomic, ASpinLockGivesOthersTheirTurn) {
  Device<int> lock(1);
  Device<int> count(1);
  MC_LAUNCH(count_under_lock, 8, 64, 0, lock.get(), count.get());
  EXPECT_EQ(count[0], 512);
  EXPECT_EQ(report(), "");
}

__global__ void wait_for_flag(volatile int* flag, int* y) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {
    }
    *y = 1;
  } else if (threadIdx.x == 63) {
    *flag = 1;
  }
}

TEST_F(Atomic, SpinningOnAVolatileLetsTheWriterStart) {
  Device<int> flag(1);
  Device<int> y(1);
  MC_LAUNCH(wait_for_flag, 1, 64, 0, flag.get(), y.get());
  EXPECT_EQ(y[0], 1);
}

__global__ void last_block_sums(const int* x, int* partial, unsigned* done, int* y) {
  __shared__ bool is_last;
  atomicAdd(&partial[blockIdx.x], x[blockIdx.x * blockDim.x + threadIdx.x]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    for (unsigned i = 0; i < gridDim.x; ++i) *y += partial[i];
  }
}

TEST_F(Atomic, TheLastBlockMayReadWhatOthersWrote) {
  for (const uint64_t schedule : kSchedules) {
    mc_emu_set_schedule(schedule);
    Device<int> x(1024, 2);
    Device<int> partial(16);
    Device<unsigned> done(1);
    Device<int> y(1);
    MC_LAUNCH(last_block_sums, 16, 64, 0, x.get(), partial.get(), done.get(), y.get());
    EXPECT_EQ(y[0], 2048);
  }
  EXPECT_EQ(report(), "");
}

}  // namespace
}  // namespace mc::emu::testing
