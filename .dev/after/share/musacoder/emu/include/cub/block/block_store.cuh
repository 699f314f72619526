// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_STORE_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_STORE_CUH_

// The class cub::BlockStore and the functions StoreDirect...: the reverse of block_load.cuh.

#include "cub/util/slots.cuh"

namespace cub {

enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <class T, int kItems, class Iterator>
void StoreDirectBlocked(int thread, Iterator target, T (&items)[kItems]) {
  for (int i = 0; i < kItems; ++i) target[thread * kItems + i] = items[i];
}
template <class T, int kItems, class Iterator>
void StoreDirectBlocked(int thread, Iterator target, T (&items)[kItems], int num_valid) {
  for (int i = 0; i < kItems && thread * kItems + i < num_valid; ++i) {
    target[thread * kItems + i] = items[i];
  }
}
template <int kNumThreads, class T, int kItems, class Iterator>
void StoreDirectStriped(int thread, Iterator target, T (&items)[kItems]) {
  for (int i = 0; i < kItems; ++i) target[thread + i * kNumThreads] = items[i];
}
template <int kNumThreads, class T, int kItems, class Iterator>
void StoreDirectStriped(int thread, Iterator target, T (&items)[kItems], int num_valid) {
  for (int i = 0; i < kItems && thread + i * kNumThreads < num_valid; ++i) {
    target[thread + i * kNumThreads] = items[i];
  }
}

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD,
          BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1, int = 0>
class BlockStore {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  struct Storage {
    unsigned char unused;
  };
  MC_CUB_STORAGE(BlockStore, Storage)

 public:
  template <class Iterator>
  void Store(Iterator target, T (&items)[ITEMS_PER_THREAD]) {
    Store(target, items, kNumThreads * ITEMS_PER_THREAD);
  }
  template <class Iterator>
  void Store(Iterator target, T (&items)[ITEMS_PER_THREAD], int num_valid) {
    const int thread = detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>();
    if (ALGORITHM == BLOCK_STORE_STRIPED) {
      StoreDirectStriped<kNumThreads>(thread, target, items, num_valid);
    } else {
      StoreDirectBlocked(thread, target, items, num_valid);
    }
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_STORE_CUH_
