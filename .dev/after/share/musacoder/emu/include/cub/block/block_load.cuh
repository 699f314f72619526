// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_LOAD_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_LOAD_CUH_

// The class cub::BlockLoad and the functions LoadDirect...  The algorithms differ in how they reach
// memory, not in what a thread gets: its own run of items (blocked), or every kNumThreads-th item
// for BLOCK_LOAD_STRIPED.

#include "cub/util/slots.cuh"

namespace cub {

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};

template <class T, int kItems, class Iterator>
void LoadDirectBlocked(int thread, Iterator source, T (&items)[kItems]) {
  for (int i = 0; i < kItems; ++i) items[i] = source[thread * kItems + i];
}
template <class T, int kItems, class Iterator>
void LoadDirectBlocked(int thread, Iterator source, T (&items)[kItems], int num_valid) {
  for (int i = 0; i < kItems && thread * kItems + i < num_valid; ++i) {
    items[i] = source[thread * kItems + i];
  }
}
template <class T, class Default, int kItems, class Iterator>
void LoadDirectBlocked(int thread, Iterator source, T (&items)[kItems], int num_valid,
                       Default absent) {
  for (int i = 0; i < kItems; ++i) items[i] = static_cast<T>(absent);
  LoadDirectBlocked(thread, source, items, num_valid);
}
template <int kNumThreads, class T, int kItems, class Iterator>
void LoadDirectStriped(int thread, Iterator source, T (&items)[kItems]) {
  for (int i = 0; i < kItems; ++i) items[i] = source[thread + i * kNumThreads];
}
template <int kNumThreads, class T, int kItems, class Iterator>
void LoadDirectStriped(int thread, Iterator source, T (&items)[kItems], int num_valid) {
  for (int i = 0; i < kItems && thread + i * kNumThreads < num_valid; ++i) {
    items[i] = source[thread + i * kNumThreads];
  }
}

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD,
          BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1, int = 0>
class BlockLoad {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  struct Storage {
    unsigned char unused;
  };
  MC_CUB_STORAGE(BlockLoad, Storage)

 public:
  template <class Iterator>
  void Load(Iterator source, T (&items)[ITEMS_PER_THREAD]) {
    Load(source, items, kNumThreads * ITEMS_PER_THREAD);
  }
  template <class Iterator>
  void Load(Iterator source, T (&items)[ITEMS_PER_THREAD], int num_valid) {
    const int thread = detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>();
    if (ALGORITHM == BLOCK_LOAD_STRIPED) {
      LoadDirectStriped<kNumThreads>(thread, source, items, num_valid);
    } else {
      LoadDirectBlocked(thread, source, items, num_valid);
    }
  }
  template <class Iterator, class Default>
  void Load(Iterator source, T (&items)[ITEMS_PER_THREAD], int num_valid, Default absent) {
    for (T& item : items) item = static_cast<T>(absent);
    Load(source, items, num_valid);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_LOAD_CUH_
