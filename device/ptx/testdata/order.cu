// SPDX-License-Identifier: Apache-2.0
//
// Threads that synchronise through words: what orders two accesses, and what only looks as if it
// did. x is input, words and y are zero.
#define KERNEL(name) extern "C" __global__ void name(const int* x, int* words, int* y)

constexpr int kThreads = 64;

__device__ void lock_device(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
}

__device__ void unlock_device(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

__device__ bool is_last_block(int* count) {
  return atomicAdd(count, 1) == static_cast<int>(gridDim.x) - 1;
}

__device__ void add_by_compare_and_swap(float* to, float value) {
  int* word = reinterpret_cast<int*>(to);
  int old = *word, compared;
  do {
    compared = old;
    old = atomicCAS(word, compared, __float_as_int(__int_as_float(compared) + value));
  } while (old != compared);
}

__device__ int load_relaxed(const int* word) {
  int value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

__device__ void store_relaxed(int* word, int value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// ---- Kernels without a fault.

KERNEL(ok_locks) {
  const int which = static_cast<int>(threadIdx.x % 4);
  lock_device(&words[which]);
  y[which] += 1;
  unlock_device(&words[which]);
}

KERNEL(ok_shared_lock) {
  __shared__ int lock;
  __shared__ int sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  for (int i = 0; i < 3; ++i) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    asm volatile("" ::: "memory");  // The compiler moves accesses over relaxed atomics.
    sum += 1;
    asm volatile("" ::: "memory");
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

KERNEL(ok_plain_unlock) {
  if (threadIdx.x != 0) return;
  lock_device(words);
  *y += 1;
  __threadfence();
  *words = 0;
}

KERNEL(ok_fence_of_the_counting_thread) {
  __shared__ bool is_last;
  int* parts = words + 64;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  parts[i] = x[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = is_last_block(words);
  }
  __syncthreads();
  if (!is_last) return;
  for (unsigned k = threadIdx.x; k < gridDim.x * blockDim.x; k += blockDim.x)
    atomicAdd(y, parts[k]);
}

KERNEL(ok_fence_of_all_threads) {
  __shared__ bool is_last;
  int* parts = words + 64;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  parts[i] = x[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 40) is_last = is_last_block(words);
  __syncthreads();
  if (!is_last) return;
  for (unsigned k = threadIdx.x; k < gridDim.x * blockDim.x; k += blockDim.x)
    atomicAdd(y, parts[k]);
  if (threadIdx.x == 0) *words = 0;
}

KERNEL(ok_lane_of_each_warp) {
  int* parts = words + 64;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  parts[i] = x[i];
  __syncwarp();
  if (threadIdx.x % 32 != 0) return;
  __threadfence();
  const int warps = static_cast<int>(gridDim.x * (blockDim.x / 32));
  if (atomicAdd(words, 1) != warps - 1) return;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];
}

KERNEL(ok_look_back) {
  __shared__ int tile;
  __shared__ int before;
  __shared__ int values[kThreads];
  volatile int* state = words + 64;
  volatile int* total = words + 128;
  volatile int* prefix = words + 192;
  if (threadIdx.x == 0) tile = atomicAdd(words, 1);
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

// A word that holds its own flag needs no fence.
KERNEL(ok_packed_look_back) {
  if (threadIdx.x != 0) return;
  volatile int* packed = words + 64;
  const int tile = atomicAdd(words, 1);
  int earlier = 0;
  if (tile > 0) {
    int now;
    while (((now = packed[tile - 1]) & 1) == 0) {
    }
    earlier = now >> 1;
  }
  packed[tile] = (earlier + x[tile]) << 1 | 1;
  y[tile] = earlier + x[tile];
}

KERNEL(ok_turns) {
  __shared__ int mine;
  volatile int* turn = words + 1;
  if (threadIdx.x == 0) mine = atomicAdd(words, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    while (*turn != mine) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 1) {
    y[mine] = mine == 0 ? 1 : y[mine - 1] + y[0];
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    *turn = mine + 1;
  }
}

// The write of an earlier block is passed on from one flag to the next.
KERNEL(ok_passed_on) {
  if (threadIdx.x != 0) return;
  volatile int* flags = words + 64;
  const int mine = atomicAdd(words, 1);
  if (mine == 0) {
    words[1] = 7;
  } else {
    while (flags[mine - 1] == 0) {
    }
    y[mine] = words[1];
  }
  __threadfence();
  flags[mine] = 1;
}

KERNEL(ok_last_warp) {
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

// Looks before it updates, as kernels do that want to spare the atomic.
KERNEL(ok_looks_first) {
  const int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (*y < v) atomicMax(y, v);
}

KERNEL(ok_release_and_acquire) {
  if (threadIdx.x != 0) return;
  if (atomicAdd(words, 1) == 0) {
    words[2] = 9;
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(words + 1) : "memory");
    return;
  }
  int flag = 0;
  while (flag == 0) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(words + 1) : "memory");
  }
  atomicAdd(y, words[2]);
}

// A semaphore as CUTLASS has it: the whole block waits by a barrier in a loop.
KERNEL(ok_semaphore) {
  const int mine = static_cast<int>(blockIdx.x);
  int state = 0;
  do {
    if (threadIdx.x == 0) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(state) : "l"(words) : "memory");
    }
  } while (__syncthreads_and(state != mine) != 0);
  y[threadIdx.x] += x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(words), "r"(mine + 1) : "memory");
  }
}

// A warp fills a buffer that the other one empties.
KERNEL(ok_producer_and_consumer) {
  __shared__ int buffer[2][32];
  const int lane = threadIdx.x % 32;
  int sum = 0;
  for (int k = 0; k < 6; ++k) {
    if (threadIdx.x < 32) {
      if (k >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + k % 2) : "memory");
      buffer[k % 2][lane] = x[32 * k + lane];
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + k % 2) : "memory");
    } else {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + k % 2) : "memory");
      sum += buffer[k % 2][31 - lane];
      if (k < 4) asm volatile("bar.arrive %0, 64;" ::"r"(3 + k % 2) : "memory");
    }
  }
  if (threadIdx.x >= 32) y[lane] = sum;
}

KERNEL(ok_tiles_of_16) {
  __shared__ int s[kThreads];
  const unsigned t = threadIdx.x, mask = t % 32 < 16 ? 0xFFFFu : 0xFFFF0000u;
  s[t] = x[t];
  __syncwarp(mask);
  const int v = s[t ^ 15];
  __syncwarp(mask);
  s[t] = v + 1;
  __syncwarp(mask);
  y[t] = s[t ^ 1];
}

KERNEL(ok_in_place) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * y[i] + *x;
  __syncthreads();
  const int other = y[i ^ 32];
  __syncthreads();
  y[i] += other;
}

KERNEL(ok_histogram) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[(x[threadIdx.x] + threadIdx.x) % 8], 1);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
}

// The first look of each loop is a plain load.
KERNEL(ok_sum_by_compare_and_swap) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  add_by_compare_and_swap(&sum, 1);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = static_cast<int>(sum);
}

// Loads and stores of atomic words, of which any order will do.
KERNEL(ok_relaxed_labels) {
  int* labels = words + 64;
  const int mine = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) + 1;
  for (int k = 0; k < 4; ++k) {
    if (load_relaxed(&labels[k]) < mine) store_relaxed(&labels[k], mine);
  }
  int sum = 0;
  for (int k = 3; k >= 0; --k) sum += load_relaxed(&labels[k]);
  y[mine] = sum;
}

// Words that atomics update are looked at in any order.
KERNEL(ok_looks_at_two_words) {
  const int mine = x[threadIdx.x] + static_cast<int>(blockIdx.x);
  for (int k = 1; k >= 0; --k) {
    int seen = *static_cast<volatile int*>(&y[k]);
    while (seen < mine) {
      const int before = seen;
      seen = atomicCAS(&y[k], before, mine);
      if (seen == before) break;
    }
  }
}

KERNEL(ok_atomics_of_a_block) { atomicAdd_block(&y[blockIdx.x], 1); }

KERNEL(ok_flag_in_shared) {
  __shared__ volatile int flag;
  __shared__ int value;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    value = 5;
    __threadfence_block();
    flag = 1;
  } else if (threadIdx.x == 32) {
    while (flag == 0) {
    }
    y[0] = value;
  }
}

// ---- Kernels that only seem to synchronise.

KERNEL(bad_dummy_atomic) {
  if (threadIdx.x != 0) return;
  atomicAdd(words, 1);
  *y = *y + 1;  // global_race
}

KERNEL(bad_fence_alone) {
  if (threadIdx.x != 0) return;
  __threadfence();
  *y = *y + 1;  // global_race
}

KERNEL(bad_dummy_on_both_sides) {
  if (threadIdx.x != 0) return;
  atomicAdd(words, 1);
  *y = *y + 1;  // global_race
  __threadfence();
  atomicAdd(words, 1);
}

// The two blocks of a word are far from one another.
KERNEL(bad_dummy_of_far_blocks) {
  if (threadIdx.x != 0) return;
  atomicAdd(words, 1);
  y[blockIdx.x % 8] = y[blockIdx.x % 8] + 1;  // global_race
  __threadfence();
  atomicAdd(words, 1);
}

KERNEL(bad_other_locks) {
  if (threadIdx.x != 0) return;
  lock_device(&words[blockIdx.x]);
  *y = *y + 1;  // global_race
  unlock_device(&words[blockIdx.x]);
}

KERNEL(bad_volatile_update) {
  if (threadIdx.x != 0) return;
  volatile int* sum = y;
  __threadfence();
  *sum = *sum + 1;  // global_race
}

KERNEL(bad_no_fence) {
  __shared__ bool is_last;
  int* parts = words + 64;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) is_last = is_last_block(words);
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];  // global_race
}

// The fence of one thread, before the barrier, covers none of the others' stores.
KERNEL(bad_fence_before_the_barrier) {
  __shared__ bool is_last;
  int* parts = words + 64;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (threadIdx.x == 0) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = is_last_block(words);
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];  // global_race
}

// The ticket is taken before the data is there, which only a late block shows.
KERNEL(early_ticket) {
  if (threadIdx.x != 0) return;
  const bool is_last = is_last_block(words);
  atomicAdd(&words[1], x[blockIdx.x]);
  if (is_last) *y = atomicAdd(&words[1], 0);
}

// An exchange whose result is unused is still atomic.
KERNEL(exchanges_of_one_word) { atomicExch(y, static_cast<int>(threadIdx.x)); }

// The barrier of the warp is between the store and the updates, of which the first is the writer's.
KERNEL(updates_after_own_store) {
  __shared__ int counts[32];
  if (threadIdx.x >= 32) return;
  counts[threadIdx.x] = 0;
  __syncwarp();
  atomicAdd(&counts[threadIdx.x / 4], 1);
  atomicAdd(&counts[(threadIdx.x + 9) % 32], 1);
  __syncwarp();
  y[blockIdx.x * 32 + threadIdx.x] = counts[threadIdx.x];
}

// Others add between the load and the exchange.
KERNEL(bad_update_by_exchange) {
  if (threadIdx.x != 0) return;
  const int before = *static_cast<volatile int*>(y);
  __threadfence();
  atomicExch(y, before + 1);  // global_race
}

KERNEL(bad_fence_of_the_block) {
  __shared__ bool is_last;
  int* parts = words + 64;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_block();
    is_last = is_last_block(words);
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];  // global_race
}

KERNEL(bad_fence_of_one_thread) {
  __shared__ bool is_last;
  int* parts = words + 64;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = is_last_block(words);
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];  // global_race
}

KERNEL(bad_written_late) {
  __shared__ bool is_last;
  int* parts = words + 64;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = is_last_block(words);
  }
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) *y += parts[k];  // global_race
}

KERNEL(bad_does_not_wait) {
  if (threadIdx.x != 0) return;
  atomicAdd(words, 1);
  y[64 + blockIdx.x] = blockIdx.x == 0 ? 0 : y[blockIdx.x - 1];  // global_race
  y[blockIdx.x] = 1;
}

// The carry of the block before is read behind a flag that its writer set without a fence.
KERNEL(bad_flag_without_fence) {
  if (threadIdx.x != 0) return;
  volatile int* flags = words + 64;
  volatile int* carry = words + 128;
  int sum = 0;
  if (blockIdx.x > 0) {
    while (flags[blockIdx.x - 1] == 0) {
    }
    sum = carry[blockIdx.x - 1];  // global_race
  }
  carry[blockIdx.x] = sum + x[blockIdx.x];
  flags[blockIdx.x] = 1;
  y[blockIdx.x] = sum;
}

KERNEL(bad_exchange_of_another_word) {
  __shared__ int dummy;
  __shared__ int count;
  if (threadIdx.x == 0) dummy = count = 0;
  __syncthreads();
  atomicExch(&dummy, 1);
  count += 1;  // shared_race
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = count;
}

KERNEL(bad_exchanges_on_both_sides) {
  __shared__ int dummy;
  __shared__ int count;
  if (threadIdx.x == 0) dummy = count = 0;
  __syncthreads();
  atomicExch(&dummy, 1);
  count += 1;  // shared_race
  atomicExch(&dummy, 0);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = count;
}

KERNEL(bad_no_barrier_after_clearing) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  atomicAdd(&sum, 1);  // shared_race
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

KERNEL(bad_no_barrier_before_reading) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1.0f);
  if (threadIdx.x == 0) y[blockIdx.x] = static_cast<int>(sum);  // shared_race
}

KERNEL(bad_sum_by_compare_and_swap) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  add_by_compare_and_swap(&sum, 1);
  if (threadIdx.x == 0) y[blockIdx.x] = static_cast<int>(sum);  // shared_race
}

KERNEL(bad_takes_and_clears) {
  atomicAdd(&words[blockIdx.x], 1);  // global_race
  if (threadIdx.x == 0) {
    y[blockIdx.x] = words[blockIdx.x];
    words[blockIdx.x] = 0;
  }
}

KERNEL(bad_clears_what_others_update) {
  if (blockIdx.x + 1 == gridDim.x && threadIdx.x == 5) *y = 0;  // global_race
  if (threadIdx.x == 0) atomicAdd(y, 1);
}

KERNEL(bad_updates_what_others_clear) {
  if (blockIdx.x == 0 && threadIdx.x == 5) *y = 3;
  if (threadIdx.x == 0) atomicAdd(y, 1);  // global_race
}

KERNEL(bad_scope_of_a_block) {
  if (threadIdx.x == 0) atomicAdd_block(y, 1);  // global_race
}

KERNEL(bad_shuffle_for_a_barrier) {
  __shared__ int s[32];
  const int t = threadIdx.x % 32;
  if (threadIdx.x >= 32) return;
  s[t] = x[t];
  const int any = __shfl_sync(~0u, t, 0);
  y[t] = s[31 - t] + any;  // shared_race
}

KERNEL(bad_tiles_of_16) {
  __shared__ int s[kThreads];
  const unsigned t = threadIdx.x, mask = t % 32 < 16 ? 0xFFFFu : 0xFFFF0000u;
  s[t] = x[t];
  __syncwarp(mask);
  y[t] = s[t ^ 16];  // shared_race
}

KERNEL(bad_arrives_and_reads) {
  __shared__ int s[32];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    y[threadIdx.x] = s[threadIdx.x - 32];  // shared_race
  }
}

// The other half of the block does not take part in the barrier.
KERNEL(bad_barrier_of_others) {
  __shared__ int s[2 * kThreads];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    s[threadIdx.x % 64] = 1;  // shared_race
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    y[threadIdx.x] = s[threadIdx.x - 64];
  }
}

KERNEL(bad_shift_in_place) {
  const unsigned t = threadIdx.x;
  const int next = y[t + 1];
  y[t] = next + x[t];  // global_race
}

KERNEL(bad_source_of_a_copy) {
  __shared__ int s[kThreads];
  const unsigned t = threadIdx.x, to = static_cast<unsigned>(__cvta_generic_to_shared(&s[t]));
  int* own = words + blockIdx.x * kThreads + t;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to),
               "l"(own)  // global_race

               : "memory");
  *own = 7;
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[t] = s[t];
}

__constant__ int table[64];

KERNEL(bad_constant_of_the_launch) {
  int* mine;
  asm("cvta.const.u64 %0, table;" : "=l"(mine));
  asm volatile("st.global.u32 [%0], 5;" ::"l"(mine + threadIdx.x % 64) : "memory");
  int v;
  asm volatile("ld.const.u32 %0, [table];" : "=r"(v)::"memory");  // global_race
  y[threadIdx.x] = v + table[threadIdx.x & 1];
}

KERNEL(ok_counts_after_clearing) {
  int* own = words + blockIdx.x;
  if (threadIdx.x == 0) *own = 0;
  __syncthreads();
  atomicAdd(own, 1);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = *own;
}
