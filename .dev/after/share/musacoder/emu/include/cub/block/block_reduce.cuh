// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_REDUCE_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_REDUCE_CUH_

// The class cub::BlockReduce: reductions over a block of one to three dimensions.  Thread 0 gets
// the result, the others their own partial value.  All algorithms are the same one here.

#include "cub/util/operators.cuh"
#include "cub/util/slots.cuh"

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
  BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};

template <class T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockReduce {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Storage = detail::Slots<T, kNumThreads>;
  MC_CUB_STORAGE(BlockReduce, Storage)

 public:
  template <class Operator>
  T Reduce(T input, Operator combine) {
    return Reduce(input, combine, kNumThreads);
  }

  // Over the first `num_valid` threads.
  template <class Operator>
  T Reduce(T input, Operator combine, int num_valid) {
    const int thread = detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>();
    storage_.put(thread, input);
    __syncthreads();
    if (thread != 0) return input;
    T total = storage_[0];
    for (int i = 1; i < num_valid && i < kNumThreads; ++i) total = combine(total, storage_[i]);
    return total;
  }

  template <int kItems, class Operator>
  T Reduce(T (&items)[kItems], Operator combine) {
    T total = items[0];
    for (int i = 1; i < kItems; ++i) total = combine(total, items[i]);
    return Reduce(total, combine);
  }

  T Sum(T input) { return Reduce(input, ::cub::Sum()); }
  T Sum(T input, int num_valid) { return Reduce(input, ::cub::Sum(), num_valid); }
  template <int kItems>
  T Sum(T (&items)[kItems]) {
    return Reduce(items, ::cub::Sum());
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_REDUCE_CUH_
