// SPDX-License-Identifier: Apache-2.0
//
// An environment in which the tests run gpu_kernels.cu on the host: each thread of a block is a
// context (ucontext); the contexts run one at a time and switch at barriers.
#ifndef MC_MODEL_TESTING_HOST_GPU_H_
#define MC_MODEL_TESTING_HOST_GPU_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <ucontext.h>

namespace mc::model::host_gpu {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Runs one block at a time and tracks the state of its threads.
class BlockRunner {
 public:
  static BlockRunner& current() {
    static BlockRunner kRunner;
    return kRunner;
  }

  void run(unsigned threads, const std::function<void()>& body) {
    body_ = &body;
    threads_.assign(threads, {});
    contexts_.resize(std::max<size_t>(contexts_.size(), threads));
    for (unsigned i = 0; i < threads; ++i) prepare(i);
    for (unsigned done = 0; done < threads;) {
      done = 0;
      for (now_ = 0; now_ < threads; ++now_) {
        if (!threads_[now_].is_done) ::swapcontext(&main_, &contexts_[now_].context);
        done += threads_[now_].is_done ? 1 : 0;
      }
    }
  }

  unsigned thread() const { return now_; }
  unsigned num_threads() const { return static_cast<unsigned>(threads_.size()); }

  // Waits until `count` threads, beginning with `first`, have arrived.
  void wait(unsigned first, unsigned count) {
    Thread& mine = threads_[now_];
    const int64_t turn = ++mine.arrivals[count == kWarpSize ? 0 : 1];
    while (!all_are_here(first, count, turn)) yield();
  }

  template <typename T>
  T exchange(T value, unsigned other) {
    const unsigned first = now_ / kWarpSize * kWarpSize;
    std::memcpy(threads_[now_].slot.data(), &value, sizeof(T));
    wait(first, kWarpSize);
    std::memcpy(&value, threads_[first + other % kWarpSize].slot.data(), sizeof(T));
    wait(first, kWarpSize);
    return value;
  }

  static constexpr unsigned kWarpSize = 32;

 private:
  struct Thread {
    bool is_done = false;
    // The number of arrivals at the barrier of the warp and at that of the block.
    std::array<int64_t, 2> arrivals = {};
    std::array<char, 8> slot = {};
  };
  struct Context {
    ucontext_t context = {};
    std::vector<char> stack = std::vector<char>(size_t{64} << 10);
  };

  static void enter() {
    BlockRunner& runner = current();
    (*runner.body_)();
    runner.threads_[runner.now_].is_done = true;
    runner.yield();
  }
  void prepare(unsigned i) {
    Context& one = contexts_[i];
    ::getcontext(&one.context);
    one.context.uc_stack.ss_sp = one.stack.data();
    one.context.uc_stack.ss_size = one.stack.size();
    ::makecontext(&one.context, &BlockRunner::enter, 0);
  }
  void yield() { ::swapcontext(&contexts_[now_].context, &main_); }
  bool all_are_here(unsigned first, unsigned count, int64_t turn) const {
    for (unsigned i = first; i < first + count; ++i) {
      if (!threads_[i].is_done && threads_[i].arrivals[count == kWarpSize ? 0 : 1] < turn) {
        return false;
      }
    }
    return true;
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Context> contexts_;
  ucontext_t main_ = {};
  unsigned now_ = 0;
};

inline Index block_index, block_size, grid_size;

inline Index thread_index() { return {BlockRunner::current().thread(), 0, 0}; }

template <typename Kernel>
void launch(Index grid, unsigned threads, const Kernel& kernel) {
  grid_size = grid;
  block_size = {threads, 1, 1};
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        block_index = {x, y, z};
        BlockRunner::current().run(threads, kernel);
      }
    }
  }
}

}  // namespace mc::model::host_gpu

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define threadIdx mc::model::host_gpu::thread_index()
#define blockIdx mc::model::host_gpu::block_index
#define blockDim mc::model::host_gpu::block_size
#define gridDim mc::model::host_gpu::grid_size

inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __expf(float x) { return std::exp(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int step) {
  auto& runner = mc::model::host_gpu::BlockRunner::current();
  return runner.exchange(value, runner.thread() ^ static_cast<unsigned>(step));
}
template <typename T>
T __shfl_up_sync(unsigned, T value, int step) {
  auto& runner = mc::model::host_gpu::BlockRunner::current();
  const unsigned lane = runner.thread() % runner.kWarpSize;
  const auto by = static_cast<unsigned>(step);
  return runner.exchange(value, lane >= by ? lane - by : lane);
}
inline void __syncthreads() {
  auto& runner = mc::model::host_gpu::BlockRunner::current();
  runner.wait(0, runner.num_threads());
}
inline int __syncthreads_count(bool is_one) {
  static int count = 0;
  __syncthreads();
  count += is_one ? 1 : 0;
  __syncthreads();
  const int all = count;
  __syncthreads();
  count = 0;
  return all;
}
template <typename T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}
inline int atomicMin(int* to, int value) {
  const int before = *to;
  *to = std::min(before, value);
  return before;
}

#endif  // MC_MODEL_TESTING_HOST_GPU_H_
