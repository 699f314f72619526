// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_NEIGHBOURS_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_NEIGHBOURS_CUH_

// The classes cub::BlockShuffle, BlockDiscontinuity, BlockAdjacentDifference and BlockHistogram:
// what a thread does with the items of its neighbours.  Items are in the blocked arrangement.

#include "cub/util/slots.cuh"

namespace cub {

template <class T, int BLOCK_DIM_X, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockShuffle {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Storage = detail::Slots<T, kNumThreads>;
  MC_CUB_STORAGE(BlockShuffle, Storage)

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }

 public:
  // A thread without such a neighbour keeps `output`.
  void Offset(T input, T& output, int distance = 1) {
    storage_.put(thread(), input);
    __syncthreads();
    const int source = thread() + distance;
    if (source >= 0 && source < kNumThreads) output = storage_[source];
  }
  void Rotate(T input, T& output, unsigned distance = 1) {
    storage_.put(thread(), input);
    __syncthreads();
    output = storage_[static_cast<int>((static_cast<unsigned>(thread()) + distance) % kNumThreads)];
  }
  template <int kItems>
  void Up(T (&input)[kItems], T (&previous)[kItems]) {
    storage_.put(thread(), input[kItems - 1]);
    __syncthreads();
    for (int i = kItems - 1; i > 0; --i) previous[i] = input[i - 1];
    if (thread() > 0) previous[0] = storage_[thread() - 1];
  }
  template <int kItems>
  void Down(T (&input)[kItems], T (&next)[kItems]) {
    storage_.put(thread(), input[0]);
    __syncthreads();
    for (int i = 0; i + 1 < kItems; ++i) next[i] = input[i + 1];
    if (thread() + 1 < kNumThreads) next[kItems - 1] = storage_[thread() + 1];
  }
};

template <class T, int BLOCK_DIM_X, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockDiscontinuity {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Storage = detail::Slots<T, 2 * kNumThreads>;
  MC_CUB_STORAGE(BlockDiscontinuity, Storage)

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }
  template <int kItems>
  void share(T (&input)[kItems]) {
    storage_.put(thread(), input[kItems - 1]);
    storage_.put(kNumThreads + thread(), input[0]);
    __syncthreads();
  }

 public:
  template <int kItems, class Flag, class Operator>
  void FlagHeads(Flag (&flags)[kItems], T (&input)[kItems], Operator differs) {
    share(input);
    for (int i = kItems - 1; i > 0; --i) flags[i] = differs(input[i - 1], input[i]);
    flags[0] = thread() == 0 ? 1 : differs(storage_[thread() - 1], input[0]);
  }
  template <int kItems, class Flag, class Operator>
  void FlagTails(Flag (&flags)[kItems], T (&input)[kItems], Operator differs) {
    share(input);
    for (int i = 0; i + 1 < kItems; ++i) flags[i] = differs(input[i], input[i + 1]);
    flags[kItems - 1] = thread() + 1 == kNumThreads
                            ? 1
                            : differs(input[kItems - 1], storage_[kNumThreads + thread() + 1]);
  }
};

template <class T, int BLOCK_DIM_X, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockAdjacentDifference {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Storage = detail::Slots<T, 2 * kNumThreads>;
  MC_CUB_STORAGE(BlockAdjacentDifference, Storage)

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }

 public:
  template <int kItems, class Out, class Operator>
  void SubtractLeft(T (&input)[kItems], Out (&output)[kItems], Operator difference) {
    storage_.put(thread(), input[kItems - 1]);
    __syncthreads();
    for (int i = kItems - 1; i > 0; --i) output[i] = difference(input[i], input[i - 1]);
    output[0] = thread() == 0 ? input[0] : difference(input[0], storage_[thread() - 1]);
  }
  template <int kItems, class Out, class Operator>
  void SubtractRight(T (&input)[kItems], Out (&output)[kItems], Operator difference) {
    storage_.put(thread(), input[0]);
    __syncthreads();
    for (int i = 0; i + 1 < kItems; ++i) output[i] = difference(input[i], input[i + 1]);
    output[kItems - 1] = thread() + 1 == kNumThreads
                             ? input[kItems - 1]
                             : difference(input[kItems - 1], storage_[thread() + 1]);
  }
};

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, int BINS,
          BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1,
          int = 0>
class BlockHistogram {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Storage = detail::Slots<int, 1>;
  MC_CUB_STORAGE(BlockHistogram, Storage)

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }

 public:
  template <class Counter>
  void InitHistogram(Counter (&histogram)[BINS]) {
    for (int bin = thread(); bin < BINS; bin += kNumThreads) histogram[bin] = 0;
  }
  template <class Counter>
  void Composite(T (&items)[ITEMS_PER_THREAD], Counter (&histogram)[BINS]) {
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      atomicAdd(&histogram[static_cast<int>(items[i])], Counter(1));
    }
  }
  template <class Counter>
  void Histogram(T (&items)[ITEMS_PER_THREAD], Counter (&histogram)[BINS]) {
    InitHistogram(histogram);
    __syncthreads();
    Composite(items, histogram);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_NEIGHBOURS_CUH_
