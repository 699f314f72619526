// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_WARP_WARP_SCAN_CUH_
#define MC_EMU_CUB_WARP_WARP_SCAN_CUH_

// The class cub::WarpScan: prefix scans over the lanes of a (logical) warp, by shuffles.

#include "cooperative_groups/lanes.h"
#include "cub/util/operators.cuh"

namespace cub {

template <class T, int LOGICAL_WARP_THREADS = 32, int = 0>
class WarpScan {
  static_assert(LOGICAL_WARP_THREADS >= 1 && LOGICAL_WARP_THREADS <= 32 &&
                    (LOGICAL_WARP_THREADS & (LOGICAL_WARP_THREADS - 1)) == 0,
                "the emulator has logical warps of a power of two lanes");

 public:
  struct TempStorage {
    unsigned char unused;
  };

  explicit WarpScan(TempStorage&) {}

  void InclusiveSum(T input, T& output) { InclusiveScan(input, output, ::cub::Sum()); }
  void InclusiveSum(T input, T& output, T& aggregate) {
    InclusiveScan(input, output, ::cub::Sum(), aggregate);
  }
  void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, ::cub::Sum()); }
  void ExclusiveSum(T input, T& output, T& aggregate) {
    ExclusiveScan(input, output, T{}, ::cub::Sum(), aggregate);
  }

  template <class Operator>
  void InclusiveScan(T input, T& output, Operator combine) {
    T total = input;
    for (int distance = 1; distance < LOGICAL_WARP_THREADS; distance *= 2) {
      const T before = shifted(total, distance);
      if (lane() >= distance) total = combine(before, total);
    }
    output = total;
  }
  template <class Operator>
  void InclusiveScan(T input, T& output, Operator combine, T& aggregate) {
    InclusiveScan(input, output, combine);
    aggregate = Broadcast(output, LOGICAL_WARP_THREADS - 1);
  }

  // Without an initial value the output of lane 0 is left alone.
  template <class Operator>
  void ExclusiveScan(T input, T& output, Operator combine) {
    T inclusive = input;
    InclusiveScan(input, inclusive, combine);
    const T before = shifted(inclusive, 1);
    if (lane() > 0) output = before;
  }
  template <class Operator>
  void ExclusiveScan(T input, T& output, Operator combine, T& aggregate) {
    T inclusive = input;
    InclusiveScan(input, inclusive, combine, aggregate);
    const T before = shifted(inclusive, 1);
    if (lane() > 0) output = before;
  }
  template <class Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator combine) {
    T before = initial;
    ExclusiveScan(input, before, combine);
    output = lane() > 0 ? combine(initial, before) : initial;
  }
  template <class Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator combine, T& aggregate) {
    T before = initial;
    ExclusiveScan(input, before, combine, aggregate);
    output = lane() > 0 ? combine(initial, before) : initial;
  }

  void Sum(T input, T& inclusive, T& exclusive) {
    InclusiveSum(input, inclusive);
    exclusive = shifted(inclusive, 1);
    if (lane() == 0) exclusive = T{};
  }

  T Broadcast(T input, unsigned lane) {
    return ::mc_emu::group_shuffle(kMcEmuWarpIndex, mask(), input, static_cast<int>(lane),
                                   LOGICAL_WARP_THREADS);
  }

 private:
  static int lane() { return static_cast<int>(::mc_emu::lane()) % LOGICAL_WARP_THREADS; }
  static unsigned mask() { return ::mc_emu::lanes_of_segment(LOGICAL_WARP_THREADS); }
  static T shifted(const T& value, int distance) {
    return ::mc_emu::group_shuffle(kMcEmuWarpUp, mask(), value, distance, LOGICAL_WARP_THREADS);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_WARP_WARP_SCAN_CUH_
