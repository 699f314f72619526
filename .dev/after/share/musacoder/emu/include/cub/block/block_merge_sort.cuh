// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_MERGE_SORT_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_MERGE_SORT_CUH_

// The class cub::BlockMergeSort: stable sorts of a block's items by a comparison, in the blocked
// arrangement.  Each item counts those before it.

#include "cub/util/operators.cuh"
#include "cub/util/slots.cuh"

namespace cub {

template <class Key, int BLOCK_DIM_X, int ITEMS_PER_THREAD, class Value = NullType,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockMergeSort {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr int kNumItems = kNumThreads * ITEMS_PER_THREAD;
  struct Storage {
    detail::Slots<Key, kNumItems> keys, sorted;
    detail::Slots<Value, kNumItems> values;
  };
  MC_CUB_STORAGE(BlockMergeSort, Storage)

  static int item(int i) {
    return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>() * ITEMS_PER_THREAD + i;
  }

  template <class Compare>
  void sort(Key (&keys)[ITEMS_PER_THREAD], Value* values, Compare compare) {
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) storage_.keys.put(item(i), keys[i]);
    __syncthreads();
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      int rank = 0;
      for (int other = 0; other < kNumItems; ++other) {
        const bool is_before = other < item(i) ? !compare(keys[i], storage_.keys[other])
                                               : compare(storage_.keys[other], keys[i]);
        rank += other != item(i) && is_before;
      }
      storage_.sorted.put(rank, keys[i]);
      if (values != nullptr) storage_.values.put(rank, values[i]);
    }
    __syncthreads();
    for (int i = 0; i < ITEMS_PER_THREAD; ++i) {
      keys[i] = storage_.sorted[item(i)];
      if (values != nullptr) values[i] = storage_.values[item(i)];
    }
  }

 public:
  template <class Compare>
  void Sort(Key (&keys)[ITEMS_PER_THREAD], Compare compare) {
    sort(keys, nullptr, compare);
  }
  template <class Compare>
  void Sort(Key (&keys)[ITEMS_PER_THREAD], Value (&values)[ITEMS_PER_THREAD], Compare compare) {
    sort(keys, values, compare);
  }
  template <class Compare>
  void StableSort(Key (&keys)[ITEMS_PER_THREAD], Compare compare) {
    sort(keys, nullptr, compare);
  }
  template <class Compare>
  void StableSort(Key (&keys)[ITEMS_PER_THREAD], Value (&values)[ITEMS_PER_THREAD],
                  Compare compare) {
    sort(keys, values, compare);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_MERGE_SORT_CUH_
