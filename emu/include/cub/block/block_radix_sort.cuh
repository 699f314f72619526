// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_RADIX_SORT_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_RADIX_SORT_CUH_

// cub::BlockRadixSort: stable sorts of the keys of a block, alone or with values.

#include <algorithm>
#include <type_traits>

#include "cub/util/operators.cuh"
#include "cub/util/radix.cuh"
#include "cub/util/slots.cuh"

namespace cub {

namespace detail {

template <class Key, class Value>
struct SortItem {
  Key key;
  Value value;
};
template <class Key>
struct SortItem<Key, NullType> {
  Key key;
};

}  // namespace detail

template <class KeyT, int BLOCK_DIM_X, int ITEMS_PER_THREAD, class ValueT = NullType,
          int RADIX_BITS = 4, bool MEMOIZE_OUTER_SCAN = true, int INNER_SCAN_ALGORITHM = 0,
          int SMEM_CONFIG = 0, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockRadixSort {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr int kNumItems = kNumThreads * ITEMS_PER_THREAD;
  static constexpr int kNumBits = 8 * static_cast<int>(sizeof(KeyT));
  static constexpr bool kHasValues = !std::is_same<ValueT, NullType>::value;
  using Item = detail::SortItem<KeyT, ValueT>;
  using Storage = detail::Slots<Item, kNumItems>;
  MC_CUB_STORAGE(BlockRadixSort, Storage)

  enum class Order { kAscending, kDescending };
  enum class Result { kBlocked, kStriped };
  using Keys = KeyT (&)[ITEMS_PER_THREAD];

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }

  // `values` is null where there are none.
  void sort(Keys keys, ValueT* values, int begin_bit, int end_bit, Order order, Result result) {
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      Item item;
      item.key = keys[i];
      if constexpr (kHasValues) {
        if (values != nullptr) item.value = values[i];
      }
      storage_.put(thread() * ITEMS_PER_THREAD + i, item);
    }
    __syncthreads();
    if (thread() == 0) {
      std::stable_sort(&storage_[0], &storage_[0] + kNumItems, [=](const Item& a, const Item& b) {
        const bool down = order == Order::kDescending;
        return detail::radix_bits(a.key, begin_bit, end_bit, down) <
               detail::radix_bits(b.key, begin_bit, end_bit, down);
      });
    }
    __syncthreads();
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      const int place =
          result == Result::kBlocked ? thread() * ITEMS_PER_THREAD + i : thread() + i * kNumThreads;
      keys[i] = storage_[place].key;
      if constexpr (kHasValues) {
        if (values != nullptr) values[i] = storage_[place].value;
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
