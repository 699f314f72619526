// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_SCAN_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_SCAN_CUH_

// The class cub::BlockScan: prefix scans over a block, for one item or several a thread (in a
// blocked arrangement), with the aggregate of the block or a callback that supplies a prefix.  The
// callback runs in thread 0 only.

#include <type_traits>

#include "cub/util/operators.cuh"
#include "cub/util/slots.cuh"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int BLOCK_DIM_X, BlockScanAlgorithm ALGORITHM = BLOCK_SCAN_RAKING,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int = 0>
class BlockScan {
  static constexpr int kNumThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  // The prefix of each thread; the last slot holds the aggregate.
  using Storage = detail::Slots<T, kNumThreads + 1>;
  MC_CUB_STORAGE(BlockScan, Storage)

  // No initial value, or none yet.
  struct Nothing {};
  struct NoPrefix {
    Nothing operator()(const T&) const { return {}; }
  };
  template <class Value>
  struct Initial {
    Value value;
    T operator()(const T&) const { return static_cast<T>(value); }
  };

  static int thread() { return detail::linear_thread<BLOCK_DIM_X, BLOCK_DIM_Y>(); }

  template <class Operator>
  static T joined(const T& prefix, const T& value, Operator combine) {
    return combine(prefix, value);
  }
  template <class Operator>
  static T joined(Nothing, const T& value, Operator) {
    return value;
  }
  void put_first(const T& prefix) { storage_.put(0, prefix); }
  void put_first(Nothing) {}

  // Thread 0 turns the totals of the threads into what comes before each, and into the aggregate.
  template <class Operator, class Prefix>
  void scan_slots(Operator combine, Prefix& prefix) {
    T aggregate = storage_[0];
    for (int i = 1; i < kNumThreads; ++i) aggregate = combine(aggregate, storage_[i]);
    storage_.put(kNumThreads, aggregate);
    const auto start = prefix(aggregate);
    T running = joined(start, storage_[0], combine);
    for (int i = 1; i < kNumThreads; ++i) {
      const T total = storage_[i];
      storage_.put(i, running);
      if (i + 1 < kNumThreads) running = combine(running, total);
    }
    put_first(start);
  }

  // Returns the aggregate.  `exclusive` says whether an output leaves its own item out; thread 0
  // has something before its first item only if `has_start`.
  template <int kItems, class Operator, class Prefix>
  T scan(T (&input)[kItems], T (&output)[kItems], Operator combine, Prefix& prefix, bool exclusive,
         bool has_start) {
    T total = input[0];
    for (int i = 1; i < kItems; ++i) total = combine(total, input[i]);
    storage_.put(thread(), total);
    __syncthreads();
    if (thread() == 0) scan_slots(combine, prefix);
    __syncthreads();
    bool has_before = has_start || thread() > 0;
    T running = has_before ? storage_[thread()] : input[0];
    for (int i = 0; i < kItems; ++i) {
      const T item = input[i];
      const T after = has_before ? combine(running, item) : item;
      if (!exclusive) {
        output[i] = after;
      } else if (has_before) {
        output[i] = running;
      }
      running = after;
      has_before = true;
    }
    return storage_[kNumThreads];
  }
  template <class Operator, class Prefix>
  T scan(const T& input, T& output, Operator combine, Prefix& prefix, bool exclusive,
         bool has_start) {
    T in[1] = {input};
    T out[1] = {output};
    const T aggregate = scan(in, out, combine, prefix, exclusive, has_start);
    output = out[0];
    return aggregate;
  }

  template <class Input, class Output, class Operator>
  T inclusive(Input& input, Output& output, Operator combine) {
    NoPrefix none;
    return scan(input, output, combine, none, false, false);
  }
  template <class Input, class Output, class Operator>
  T exclusive(Input& input, Output& output, Operator combine) {
    NoPrefix none;
    return scan(input, output, combine, none, true, false);
  }
  template <class Input, class Output, class Value, class Operator>
  T exclusive_from(Input& input, Output& output, Value value, Operator combine) {
    Initial<Value> initial{value};
    return scan(input, output, combine, initial, true, true);
  }
  template <class Input, class Output, class Value, class Operator>
  T inclusive_from(Input& input, Output& output, Value value, Operator combine) {
    Initial<Value> initial{value};
    return scan(input, output, combine, initial, false, true);
  }

 public:
  // Each function has a form for one item and one for an array; `Aggregate` is T, or a callback.
  void InclusiveSum(T input, T& output) { inclusive(input, output, ::cub::Sum()); }
  void InclusiveSum(T input, T& output, T& aggregate) {
    aggregate = inclusive(input, output, ::cub::Sum());
  }
  template <class Prefix>
  void InclusiveSum(T input, T& output, Prefix& prefix) {
    scan(input, output, ::cub::Sum(), prefix, false, true);
  }
  template <int kItems>
  void InclusiveSum(T (&input)[kItems], T (&output)[kItems]) {
    inclusive(input, output, ::cub::Sum());
  }
  template <int kItems>
  void InclusiveSum(T (&input)[kItems], T (&output)[kItems], T& aggregate) {
    aggregate = inclusive(input, output, ::cub::Sum());
  }
  template <int kItems, class Prefix>
  void InclusiveSum(T (&input)[kItems], T (&output)[kItems], Prefix& prefix) {
    scan(input, output, ::cub::Sum(), prefix, false, true);
  }

  void ExclusiveSum(T input, T& output) { exclusive_from(input, output, T{}, ::cub::Sum()); }
  void ExclusiveSum(T input, T& output, T& aggregate) {
    aggregate = exclusive_from(input, output, T{}, ::cub::Sum());
  }
  template <class Prefix>
  void ExclusiveSum(T input, T& output, Prefix& prefix) {
    scan(input, output, ::cub::Sum(), prefix, true, true);
  }
  template <int kItems>
  void ExclusiveSum(T (&input)[kItems], T (&output)[kItems]) {
    exclusive_from(input, output, T{}, ::cub::Sum());
  }
  template <int kItems>
  void ExclusiveSum(T (&input)[kItems], T (&output)[kItems], T& aggregate) {
    aggregate = exclusive_from(input, output, T{}, ::cub::Sum());
  }
  template <int kItems, class Prefix>
  void ExclusiveSum(T (&input)[kItems], T (&output)[kItems], Prefix& prefix) {
    scan(input, output, ::cub::Sum(), prefix, true, true);
  }

  template <class Operator>
  void InclusiveScan(T input, T& output, Operator combine) {
    inclusive(input, output, combine);
  }
  template <class Operator>
  void InclusiveScan(T input, T& output, Operator combine, T& aggregate) {
    aggregate = inclusive(input, output, combine);
  }
  template <class Operator, class Prefix>
  void InclusiveScan(T input, T& output, Operator combine, Prefix& prefix) {
    scan(input, output, combine, prefix, false, true);
  }
  template <int kItems, class Operator>
  void InclusiveScan(T (&input)[kItems], T (&output)[kItems], Operator combine) {
    inclusive(input, output, combine);
  }
  template <int kItems, class Operator>
  void InclusiveScan(T (&input)[kItems], T (&output)[kItems], Operator combine, T& aggregate) {
    aggregate = inclusive(input, output, combine);
  }
  template <int kItems, class Operator, class Prefix>
  void InclusiveScan(T (&input)[kItems], T (&output)[kItems], Operator combine, Prefix& prefix) {
    scan(input, output, combine, prefix, false, true);
  }

  // Without an initial value the first output of thread 0 is left alone.
  template <class Operator>
  void ExclusiveScan(T input, T& output, Operator combine) {
    exclusive(input, output, combine);
  }
  template <class Operator>
  void ExclusiveScan(T input, T& output, Operator combine, T& aggregate) {
    aggregate = exclusive(input, output, combine);
  }
  template <class Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator combine) {
    exclusive_from(input, output, initial, combine);
  }
  template <class Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator combine, T& aggregate) {
    aggregate = exclusive_from(input, output, initial, combine);
  }
  template <class Operator, class Prefix,
            typename std::enable_if<!std::is_convertible<Operator, T>::value, int>::type = 0>
  void ExclusiveScan(T input, T& output, Operator combine, Prefix& prefix) {
    scan(input, output, combine, prefix, true, true);
  }
  template <int kItems, class Operator>
  void ExclusiveScan(T (&input)[kItems], T (&output)[kItems], Operator combine) {
    exclusive(input, output, combine);
  }
  template <int kItems, class Operator>
  void ExclusiveScan(T (&input)[kItems], T (&output)[kItems], Operator combine, T& aggregate) {
    aggregate = exclusive(input, output, combine);
  }
  template <int kItems, class Operator>
  void ExclusiveScan(T (&input)[kItems], T (&output)[kItems], T initial, Operator combine) {
    exclusive_from(input, output, initial, combine);
  }
  template <int kItems, class Operator>
  void ExclusiveScan(T (&input)[kItems], T (&output)[kItems], T initial, Operator combine,
                     T& aggregate) {
    aggregate = exclusive_from(input, output, initial, combine);
  }
  template <int kItems, class Operator, class Prefix,
            typename std::enable_if<!std::is_convertible<Operator, T>::value, int>::type = 0>
  void ExclusiveScan(T (&input)[kItems], T (&output)[kItems], Operator combine, Prefix& prefix) {
    scan(input, output, combine, prefix, true, true);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_BLOCK_BLOCK_SCAN_CUH_
