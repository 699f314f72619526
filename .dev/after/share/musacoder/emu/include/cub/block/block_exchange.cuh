// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_EXCHANGE_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_EXCHANGE_CUH_

// The class cub::BlockExchange moves the items of a block between the blocked arrangement (a thread
// owns a run of items), the striped one (every kNumThreads-th item) and given ranks.

#include "cub/util/slots.cuh"

namespace cub {

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, bool WARP_TIME_SLICING = false,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockExchange {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Storage = detail::Slots<T, kNumThreads * ITEMS_PER_THREAD>;
  MC_CUB_STORAGE(BlockExchange, Storage)

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }
  static int blocked(int i) { return thread() * ITEMS_PER_THREAD + i; }
  static int striped(int i) { return thread() + i * kNumThreads; }

  template <class In, class Out, class From, class To>
  void exchange(In& input, Out& output, From from, To to) {
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      if (from(i) >= 0) storage_.put(from(i), input[i]);
    }
    __syncthreads();
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) output[i] = storage_[to(i)];
  }

 public:
  template <class Out>
  void StripedToBlocked(T (&input)[ITEMS_PER_THREAD], Out (&output)[ITEMS_PER_THREAD]) {
    exchange(input, output, striped, blocked);
  }
  template <class Out>
  void BlockedToStriped(T (&input)[ITEMS_PER_THREAD], Out (&output)[ITEMS_PER_THREAD]) {
    exchange(input, output, blocked, striped);
  }
  template <class Out, class Rank>
  void ScatterToBlocked(T (&input)[ITEMS_PER_THREAD], Out (&output)[ITEMS_PER_THREAD],
                        Rank (&ranks)[ITEMS_PER_THREAD]) {
    exchange(input, output, [&](int i) { return static_cast<int>(ranks[i]); }, blocked);
  }
  template <class Out, class Rank>
  void ScatterToStriped(T (&input)[ITEMS_PER_THREAD], Out (&output)[ITEMS_PER_THREAD],
                        Rank (&ranks)[ITEMS_PER_THREAD]) {
    exchange(input, output, [&](int i) { return static_cast<int>(ranks[i]); }, striped);
  }

  void StripedToBlocked(T (&items)[ITEMS_PER_THREAD]) { StripedToBlocked(items, items); }
  void BlockedToStriped(T (&items)[ITEMS_PER_THREAD]) { BlockedToStriped(items, items); }
  template <class Rank>
  void ScatterToBlocked(T (&items)[ITEMS_PER_THREAD], Rank (&ranks)[ITEMS_PER_THREAD]) {
    ScatterToBlocked(items, items, ranks);
  }
  template <class Rank>
  void ScatterToStriped(T (&items)[ITEMS_PER_THREAD], Rank (&ranks)[ITEMS_PER_THREAD]) {
    ScatterToStriped(items, items, ranks);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_EXCHANGE_CUH_
