// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_RADIX_SORT_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_RADIX_SORT_CUH_

// The class cub::BlockRadixSort: stable sorts of the keys of a block, alone or with values.

#include <algorithm>
#include <type_traits>

#include "cub/util/operators.cuh"
#include "cub/util/radix.cuh"
#include "cub/util/slots.cuh"

namespace cub {

template <class KeyT, int BLOCK_DIM_X, int ITEMS_PER_THREAD, class ValueT = NullType,
          int RADIX_BITS = 4, bool MEMOIZE_OUTER_SCAN = true, int INNER_SCAN_ALGORITHM = 0,
          int SMEM_CONFIG = 0, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockRadixSort {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr int kNumItems = kNumThreads * ITEMS_PER_THREAD;
  static constexpr int kNumBits = 8 * static_cast<int>(sizeof(KeyT));
  static_assert(kNumItems < (1 << 16), "their numbers have 16 bits");
  static constexpr bool kHasValues = !std::is_same<ValueT, NullType>::value;
  struct Storage {
    detail::Slots<KeyT, kNumItems> keys;
    detail::Slots<ValueT, kHasValues ? kNumItems : 1> values;
  };
  MC_CUB_STORAGE(BlockRadixSort, Storage)

  enum class Order { kAscending, kDescending };
  enum class Result { kBlocked, kStriped };
  using Keys = KeyT (&)[ITEMS_PER_THREAD];

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }

  // Thread 0 finds the order of all items and applies it, in its own frame: a kernel has no heap.
  void sort_slots(int begin_bit, int end_bit, bool descending) {
    unsigned short order[kNumItems];
    for (int i = 0; i < kNumItems; ++i) order[i] = static_cast<unsigned short>(i);
    std::sort(order, order + kNumItems, [&](int a, int b) {
      const auto key_a = detail::radix_bits(storage_.keys[a], begin_bit, end_bit, descending);
      const auto key_b = detail::radix_bits(storage_.keys[b], begin_bit, end_bit, descending);
      return key_a != key_b ? key_a < key_b : a < b;
    });
    // Each cycle of the permutation begins at its least item; those before are in their places.
    for (int first = 0; first < kNumItems; ++first) {
      const KeyT key = storage_.keys[first];
      const ValueT value = storage_.values[kHasValues ? first : 0];
      int to = first;
      for (int from = order[to]; from != first; to = from, from = order[to]) {
        move_slot(to, storage_.keys[from], storage_.values[kHasValues ? from : 0]);
        order[to] = static_cast<unsigned short>(to);
      }
      move_slot(to, key, value);
      order[to] = static_cast<unsigned short>(to);
    }
  }
  void move_slot(int to, const KeyT& key, const ValueT& value) {
    storage_.keys.put(to, key);
    if constexpr (kHasValues) storage_.values.put(to, value);
  }

  // `values` is null where there are none.
  void sort(Keys keys, ValueT* values, int begin_bit, int end_bit, Order order, Result result) {
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      const int place = thread() * ITEMS_PER_THREAD + i;
      storage_.keys.put(place, keys[i]);
      if constexpr (kHasValues) storage_.values.put(place, values ? values[i] : ValueT());
    }
    __syncthreads();
    if (thread() == 0) sort_slots(begin_bit, end_bit, order == Order::kDescending);
    __syncthreads();
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      const int place =
          result == Result::kBlocked ? thread() * ITEMS_PER_THREAD + i : thread() + i * kNumThreads;
      keys[i] = storage_.keys[place];
      if constexpr (kHasValues) {
        if (values != nullptr) values[i] = storage_.values[place];
      }
    }
  }

 public:
  void Sort(Keys keys, int begin_bit = 0, int end_bit = kNumBits) {
    sort(keys, nullptr, begin_bit, end_bit, Order::kAscending, Result::kBlocked);
  }
  void Sort(Keys keys, ValueT (&values)[ITEMS_PER_THREAD], int begin_bit = 0,
            int end_bit = kNumBits) {
    sort(keys, values, begin_bit, end_bit, Order::kAscending, Result::kBlocked);
  }
  void SortDescending(Keys keys, int begin_bit = 0, int end_bit = kNumBits) {
    sort(keys, nullptr, begin_bit, end_bit, Order::kDescending, Result::kBlocked);
  }
  void SortDescending(Keys keys, ValueT (&values)[ITEMS_PER_THREAD], int begin_bit = 0,
                      int end_bit = kNumBits) {
    sort(keys, values, begin_bit, end_bit, Order::kDescending, Result::kBlocked);
  }
  void SortBlockedToStriped(Keys keys, int begin_bit = 0, int end_bit = kNumBits) {
    sort(keys, nullptr, begin_bit, end_bit, Order::kAscending, Result::kStriped);
  }
  void SortBlockedToStriped(Keys keys, ValueT (&values)[ITEMS_PER_THREAD], int begin_bit = 0,
                            int end_bit = kNumBits) {
    sort(keys, values, begin_bit, end_bit, Order::kAscending, Result::kStriped);
  }
  void SortDescendingBlockedToStriped(Keys keys, int begin_bit = 0, int end_bit = kNumBits) {
    sort(keys, nullptr, begin_bit, end_bit, Order::kDescending, Result::kStriped);
  }
  void SortDescendingBlockedToStriped(Keys keys, ValueT (&values)[ITEMS_PER_THREAD],
                                      int begin_bit = 0, int end_bit = kNumBits) {
    sort(keys, values, begin_bit, end_bit, Order::kDescending, Result::kStriped);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_RADIX_SORT_CUH_
