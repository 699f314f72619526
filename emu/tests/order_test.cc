// SPDX-License-Identifier: Apache-2.0
// Synchronisation through words: what orders two accesses, and what only looks as if it did.
#include "tests/emulation.h"

namespace mc::emu::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kThreads = 64;
constexpr const char* kGlobalRace = "\"kind\":\"global_race\"";
constexpr const char* kSharedRace = "\"kind\":\"shared_race\"";

class Order : public EmulationTest {
 protected:
  // Runs `launch` under several schedules, a few times each.
  template <class F>
  void run_often(F launch) {
    for (int i = 0; i < 5; ++i) {
      for (const uint64_t schedule : kSchedules) {
        mc_emu_set_schedule(schedule);
        launch();
      }
    }
  }
};

// --- Honest kernels.

__device__ void lock_device(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
}

__device__ void unlock_device(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void add_under_locks(int* locks, int* sums) {
  const int which = static_cast<int>(threadIdx.x % 4);
  lock_device(&locks[which]);
  sums[which] += 1;
  unlock_device(&locks[which]);
}

TEST_F(Order, LocksOrderTheBlocksThatTakeThem) {
  run_often([&] {
    Device<int> locks(4), sums(4);
    MC_LAUNCH(add_under_locks, 16, kThreads, 0, locks.get(), sums.get());
    EXPECT_THAT(sums.values(), ::testing::Each(16 * kThreads / 4));
  });
  EXPECT_EQ(report(), "");
}

__global__ void add_under_a_shared_lock(int* sums) {
  __shared__ int lock;
  __shared__ int sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  for (int i = 0; i < 3; ++i) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    sum += 1;
    sums[blockIdx.x] += 1;
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0 && sum != 3 * kThreads) sums[blockIdx.x] = -1;
}

TEST_F(Order, ALockInSharedMemoryOrdersTheThreadsOfABlock) {
  run_often([&] {
    Device<int> sums(4);
    MC_LAUNCH(add_under_a_shared_lock, 4, kThreads, 0, sums.get());
    EXPECT_THAT(sums.values(), ::testing::Each(3 * kThreads));
  });
  EXPECT_EQ(report(), "");
}

__global__ void unlock_by_a_plain_store(int* lock, int* sum) {
  if (threadIdx.x != 0) return;
  lock_device(lock);
  *sum += 1;
  __threadfence();
  *lock = 0;
}

TEST_F(Order, APlainStoreBehindAFenceMayUnlock) {
  run_often([&] {
    Device<int> lock(1), sum(1);
    MC_LAUNCH(unlock_by_a_plain_store, 16, kThreads, 0, lock.get(), sum.get());
    EXPECT_EQ(sum[0], 16);
  });
  EXPECT_EQ(report(), "");
}

// The last block sums what all blocks wrote.  kForm says who executes the fence.
template <int kForm>
__global__ void last_block_sums(const int* x, int* parts, unsigned* done, int* y) {
  __shared__ bool is_last;
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * blockDim.x + t;
  if (kForm == 0) {  // The thread that counts, behind a barrier.
    parts[i] = x[i];
    __syncthreads();
    if (t == 0) {
      __threadfence();
      is_last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
  } else if (kForm == 1) {  // All, before the barrier.
    parts[i] = x[i];
    __threadfence();
    __syncthreads();
    if (t == 0) is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  } else if (kForm == 2) {  // The threads that wrote.
    if (t % 32 == 5) {
      parts[i] = x[i] * 32;
      __threadfence();
    } else {
      parts[i] = 0;
    }
    __threadfence();
    __syncthreads();
    if (t == 40) is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  } else {  // A lane of each warp, for the warp.
    parts[i] = x[i];
    __syncwarp();
    if (t % 32 == 0) {
      __threadfence();
      const unsigned warps = gridDim.x * (blockDim.x / 32);
      if (t == 0) is_last = false;
      if (atomicAdd(done, 1u) == warps - 1) {
        for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];
      }
    }
  }
  __syncthreads();
  if (kForm == 3 || !is_last) return;
  for (unsigned k = t; k < gridDim.x * blockDim.x; k += blockDim.x) atomicAdd(y, parts[k]);
}

template <int kForm>
void expect_sum() {
  Device<int> x(16 * kThreads, 2), parts(16 * kThreads), y(1);
  Device<unsigned> done(1);
  MC_LAUNCH(last_block_sums<kForm>, 16, kThreads, 0, x.get(), parts.get(), done.get(), y.get());
  EXPECT_EQ(y[0], 2 * 16 * kThreads) << "form " << kForm;
}

TEST_F(Order, TheLastBlockMayReadWhatWasFencedBeforeTheCount) {
  run_often([] {
    expect_sum<0>();
    expect_sum<1>();
    expect_sum<2>();
    expect_sum<3>();
  });
  EXPECT_EQ(report(), "");
}

// A scan whose blocks add up what earlier blocks have published, each behind its flag.
__global__ void look_back(const int* x, int* y, unsigned* ticket, volatile int* state,
                          volatile int* total, volatile int* prefix) {
  __shared__ int tile;
  __shared__ int before;
  __shared__ int values[kThreads];
  if (threadIdx.x == 0) tile = static_cast<int>(atomicAdd(ticket, 1u));
  __syncthreads();
  const int i = tile * kThreads + static_cast<int>(threadIdx.x);
  values[threadIdx.x] = x[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int k = 0; k < kThreads; ++k) sum += values[k];
    total[tile] = sum;
    __threadfence();
    state[tile] = 1;
    int earlier = 0;
    for (int k = tile - 1; k >= 0; --k) {
      int now;
      while ((now = state[k]) == 0) {
      }
      __threadfence();
      if (now == 2) {
        earlier += prefix[k];
        break;
      }
      earlier += total[k];
    }
    prefix[tile] = earlier + sum;
    __threadfence();
    state[tile] = 2;
    before = earlier;
  }
  __syncthreads();
  int sum = before;
  for (unsigned k = 0; k <= threadIdx.x; ++k) sum += values[k];
  y[i] = sum;
}

TEST_F(Order, AScanMayLookBackThroughFlags) {
  run_often([] {
    Device<int> x(24 * kThreads, 1), y(24 * kThreads), state(24), total(24), prefix(24);
    Device<unsigned> ticket(1);
    MC_LAUNCH(look_back, 24, kThreads, 0, x.get(), y.get(), ticket.get(), state.get(), total.get(),
              prefix.get());
    for (int i = 0; i < 24 * kThreads; ++i) ASSERT_EQ(y[static_cast<size_t>(i)], i + 1);
  });
  EXPECT_EQ(report(), "");
}

// Blocks take turns; each reads what the block before, and the first one, wrote.
__global__ void take_turns(volatile int* turn, unsigned* ticket, int* values) {
  __shared__ int mine;
  if (threadIdx.x == 0) mine = static_cast<int>(atomicAdd(ticket, 1u));
  __syncthreads();
  if (threadIdx.x == 0) {
    while (*turn != mine) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 1) {
    values[mine] = mine == 0 ? 1 : values[mine - 1] + values[0];
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    *turn = mine + 1;
  }
}

TEST_F(Order, ATurnMayBePassedOnThroughAVolatileWord) {
  run_often([] {
    Device<int> turn(1), values(32);
    Device<unsigned> ticket(1);
    MC_LAUNCH(take_turns, 32, 32, 0, turn.get(), ticket.get(), values.get());
    EXPECT_EQ(values[31], 32);
    EXPECT_EQ(turn[0], 32);
  });
  EXPECT_EQ(report(), "");
}

// The write of an earlier block is passed on from one flag to the next.
__global__ void pass_flag_on(volatile int* flags, unsigned* ticket, int* first, int* y) {
  if (threadIdx.x != 0) return;
  const unsigned mine = atomicAdd(ticket, 1u);
  if (mine == 0) {
    *first = 7;
  } else {
    while (flags[mine - 1] == 0) {
    }
    y[mine] = *first;
  }
  __threadfence();
  flags[mine] = 1;
}

TEST_F(Order, WhatABlockKnowsItPassesOn) {
  run_often([] {
    Device<int> flags(32), first(1), y(32);
    Device<unsigned> ticket(1);
    MC_LAUNCH(pass_flag_on, 32, 32, 0, flags.get(), ticket.get(), first.get(), y.get());
    EXPECT_EQ(y[31], 7);
  });
  EXPECT_EQ(report(), "");
}

__global__ void last_warp_sums(const int* x, int* y) {
  __shared__ int parts[kThreads / 32];
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int v = x[threadIdx.x];
  for (int delta = 16; delta > 0; delta /= 2) v += __shfl_down_sync(~0u, v, delta);
  if (threadIdx.x % 32 != 0) return;
  parts[threadIdx.x / 32] = v;
  __threadfence_block();
  if (atomicAdd(&count, 1) == kThreads / 32 - 1) *y = parts[0] + parts[1];
}

TEST_F(Order, TheLastWarpOfABlockMaySum) {
  run_often([] {
    Device<int> x(kThreads, 3), y(1);
    MC_LAUNCH(last_warp_sums, 1, kThreads, 0, x.get(), y.get());
    EXPECT_EQ(y[0], 3 * kThreads);
  });
  EXPECT_EQ(report(), "");
}

// Looks before it updates, as kernels do that want to spare the atomic.
__global__ void largest(const int* x, int* y) {
  const int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  __threadfence();
  if (*y < v) atomicMax(y, v);
}

TEST_F(Order, AWordThatAtomicsUpdateMayBeReadPlainly) {
  run_often([] {
    Device<int> x(8 * kThreads, 5), y(1);
    MC_LAUNCH(largest, 8, kThreads, 0, x.get(), y.get());
    EXPECT_EQ(y[0], 5);
  });
  EXPECT_EQ(report(), "");
}

__global__ void release_and_acquire(int* flag, unsigned* ticket, int* data, int* y) {
  if (threadIdx.x != 0) return;
  if (atomicAdd(ticket, 1u) == 0) {
    *data = 9;
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  } else {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) {
    }
    atomicAdd(y, *data);
  }
}

TEST_F(Order, AtomicsWithMemoryOrdersNeedNoFence) {
  run_often([] {
    Device<int> flag(1), data(1), y(1);
    Device<unsigned> ticket(1);
    MC_LAUNCH(release_and_acquire, 8, 32, 0, flag.get(), ticket.get(), data.get(), y.get());
    EXPECT_EQ(y[0], 63);
  });
  EXPECT_EQ(report(), "");
}

// --- Kernels that only seem to synchronise.

enum Dummy { kAtomicBefore, kFenceBefore, kFenceAndAtomicBefore, kBothSides, kOwnLock };

// Blocks add to one word; what they do to other words orders nothing.
template <int kDummy>
__global__ void add_beside_a_dummy(int* sum, int* dummy) {
  if (threadIdx.x != 0) return;
  if (kDummy == kFenceBefore || kDummy == kFenceAndAtomicBefore) __threadfence();
  if (kDummy == kOwnLock) {
    lock_device(&dummy[blockIdx.x]);
  } else if (kDummy != kFenceBefore) {
    atomicAdd(dummy, 1);
  }
  *sum = *sum + 1;
  if (kDummy == kBothSides) {
    __threadfence();
    atomicAdd(dummy, 1);
  }
  if (kDummy == kOwnLock) unlock_device(&dummy[blockIdx.x]);
}

template <int kDummy>
void add_often() {
  for (int i = 0; i < 8; ++i) {
    Device<int> sum(1), dummy(64);
    MC_LAUNCH(add_beside_a_dummy<kDummy>, 64, 32, 0, sum.get(), dummy.get());
  }
}

TEST_F(Order, AnAtomicOfAnotherWordOrdersNothing) {
  add_often<kAtomicBefore>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

TEST_F(Order, AFenceAloneOrdersNothing) {
  add_often<kFenceBefore>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

TEST_F(Order, AReleaseDoesNotCoverWhatComesLater) {
  add_often<kFenceAndAtomicBefore>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

TEST_F(Order, AtomicsOnBothSidesAreNoLock) {
  add_often<kBothSides>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

TEST_F(Order, DifferentLocksOrderNothing) {
  add_often<kOwnLock>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

__global__ void add_through_volatile(volatile int* sum) {
  if (threadIdx.x != 0) return;
  __threadfence();
  *sum = *sum + 1;
}

TEST_F(Order, AVolatileWordBehindAFenceIsNoAtomic) {
  for (int i = 0; i < 8; ++i) {
    Device<int> sum(1);
    MC_LAUNCH(add_through_volatile, 64, 32, 0, sum.get());
  }
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

enum Flaw { kNoFence, kFenceOfBlock, kNoBarrier, kWritesLate };

template <int kFlaw>
__global__ void last_block_is_early(int* parts, unsigned* done, int* y) {
  __shared__ bool is_last;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (kFlaw != kWritesLate) parts[i] = 1;
  if (kFlaw != kNoBarrier) __syncthreads();
  if (threadIdx.x == 0) {
    if (kFlaw == kFenceOfBlock) __threadfence_block();
    if (kFlaw == kNoBarrier || kFlaw == kWritesLate) __threadfence();
    is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  if (kFlaw == kWritesLate) parts[i] = 1;
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];
}

template <int kFlaw>
void sum_early() {
  Device<int> parts(8 * kThreads), y(1);
  Device<unsigned> done(1);
  MC_LAUNCH(last_block_is_early<kFlaw>, 8, kThreads, 0, parts.get(), done.get(), y.get());
}

TEST_F(Order, TheLastBlockNeedsAFenceBeforeTheCount) {
  sum_early<kNoFence>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

TEST_F(Order, AFenceOfTheBlockShowsNothingToOthers) {
  sum_early<kFenceOfBlock>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

TEST_F(Order, AFenceIsForTheThreadThatExecutesIt) {
  mc_emu_set_schedule(1);
  sum_early<kNoBarrier>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

TEST_F(Order, WhatIsWrittenAfterTheCountIsNotCounted) {
  sum_early<kWritesLate>();
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

__global__ void reads_the_block_before(int* totals, int* dummy, int* y) {
  if (threadIdx.x != 0) return;
  atomicAdd(dummy, 1);
  y[blockIdx.x] = blockIdx.x == 0 ? 0 : totals[blockIdx.x - 1];
  totals[blockIdx.x] = 1;
}

TEST_F(Order, ABlockThatDoesNotWaitRaces) {
  Device<int> totals(32), dummy(1), y(32);
  MC_LAUNCH(reads_the_block_before, 32, 32, 0, totals.get(), dummy.get(), y.get());
  EXPECT_THAT(report(), HasSubstr(kGlobalRace));
}

// Threads count in shared memory without atomics, beside an exchange of another word.
template <bool kOnBothSides>
__global__ void count_beside_an_exchange(int* y) {
  __shared__ int dummy;
  __shared__ int count;
  if (threadIdx.x == 0) dummy = count = 0;
  __syncthreads();
  atomicExch(&dummy, 1);
  count += 1;
  if (kOnBothSides) atomicExch(&dummy, 0);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = count;
}

TEST_F(Order, AnExchangeOfAnotherSharedWordIsNoLock) {
  Device<int> y(1);
  MC_LAUNCH(count_beside_an_exchange<false>, 1, kThreads, 0, y.get());
  EXPECT_THAT(report(), HasSubstr(kSharedRace));
}

TEST_F(Order, ExchangesOnBothSidesAreNoLock) {
  Device<int> y(1);
  MC_LAUNCH(count_beside_an_exchange<true>, 1, kThreads, 0, y.get());
  EXPECT_THAT(report(), HasSubstr(kSharedRace));
}

}  // namespace
}  // namespace mc::emu::testing
