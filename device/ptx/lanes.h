// SPDX-License-Identifier: Apache-2.0
//
// A warp with its lanes, for handlers only.
//
// This header is compiled once for each variant, which MC_PTX_VARIANT names and MC_PTX_LANES gives
// the width: all that it defines is in the variant's own namespace, so that templates of two
// variants are never taken for one another.
#ifndef MC_PTX_LANES_H_
#define MC_PTX_LANES_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ptx/machine.h"
#include "ptx/operations.h"
#include "ptx/program.h"

// A loop over lanes whose elements do not depend on one another.
#define MC_LANES _Pragma("GCC ivdep") for (int l = 0; l < kLanes; ++l)
#define MC_INLINE [[gnu::always_inline]] inline
// An operation on one element, of any type.
#define MC_ELEMENT(Name, parameters, ...) \
  struct Name {                           \
    template <class T>                    \
    MC_INLINE static T of parameters {    \
      return static_cast<T>(__VA_ARGS__); \
    }                                     \
  };
// A row of a table of handlers.
#define MC_ROW(Enumerator, ...) \
  case Enumerator:              \
    return __VA_ARGS__;

namespace mc::ptx::MC_PTX_VARIANT {

constexpr int kLanes = MC_PTX_LANES;
__extension__ using Mask128 = unsigned __int128;
// One bit a lane.
using Mask = std::conditional_t<kLanes == 32, uint32_t, Mask128>;
constexpr Mask kAllLanes = ~Mask{0};

MC_INLINE int lowest(Mask mask) {
  if constexpr (kLanes == 32) {
    return __builtin_ctz(mask);
  } else {
    const uint64_t low = static_cast<uint64_t>(mask), high = static_cast<uint64_t>(mask >> 64);
    return low != 0 ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high);
  }
}

MC_INLINE int count(Mask mask) {
  if constexpr (kLanes == 32) {
    return __builtin_popcount(mask);
  } else {
    return __builtin_popcountll(static_cast<uint64_t>(mask)) +
           __builtin_popcountll(static_cast<uint64_t>(mask >> 64));
  }
}

MC_INLINE Mask bit(int lane) { return Mask{1} << lane; }
MC_INLINE bool has(Mask mask, int lane) { return (mask >> lane & 1) != 0; }

// A set of lanes with a position in the code. A leaf that diverges waits as a parent until its
// children meet at the join or leave; a call makes a child with its own frame.
struct Leaf {
  enum class State : uint8_t { kFree, kRuns, kWaitsForChildren, kAtBarrier, kAtMeeting };
  State state = State::kFree;
  bool is_call = false;  // Its children are in a function that it called.
  const Step* at = nullptr;
  const Step* join = nullptr;
  Mask lanes = 0, arrived = 0;
  int parent = -1, children = 0;
  int depth = 0;  // The depth of calls.
  uint32_t local_base = 0;
  uint8_t* frame = nullptr;
  uint8_t* callee_frame = nullptr;
  const Code* code = nullptr;
};

// Offsets in shared memory.
struct Near {
  alignas(32) uint32_t at[kLanes];
};

// A copy that was issued and for which no wait has completed.
struct PendingCopy {
  const Step* step = nullptr;
  Mask lanes = 0;
  uint32_t group = 0;  // 0: not committed.
  Near near;
  uint64_t from[kLanes] = {};  // Addresses of the lanes' bytes.
  uint32_t sizes[kLanes] = {};
  uint8_t values[kLanes * 16];
};

struct LaneWarp : Warp {
  Mask active = 0;
  Mask live = 0;                       // Lanes that have not left the kernel.
  alignas(32) int32_t chosen[kLanes];  // -1 for each active lane; unset when all are.
  int current = 0;
  std::vector<Leaf> leaves;
  std::vector<PendingCopy> pending;
  uint32_t next_group = 1;
  std::vector<uint8_t*> spare_frames;  // Frames of calls that ended.

  bool is_full() const { return active == kAllLanes; }
  void set(Mask mask) {
    active = mask;
    if (mask != kAllLanes) MC_LANES chosen[l] = -static_cast<int32_t>(mask >> l & 1);
  }
  template <class T>
  T* at(uint32_t offset) {
    return reinterpret_cast<T*>(frame + offset);
  }
  Mask& mask(uint32_t offset) { return *reinterpret_cast<Mask*>(frame + offset); }
  int thread(int lane) const { return static_cast<int>(index) * kLanes + lane; }
};

MC_INLINE LaneWarp& lanes_of(Warp& warp) { return static_cast<LaneWarp&>(warp); }

MC_INLINE LaneSet lane_set(Mask mask) {
  const Mask128 wide = mask;
  return {{static_cast<uint64_t>(wide), static_cast<uint64_t>(wide >> 64)}};
}

// The lanes whose word is negative.
MC_INLINE Mask mask_of(const int32_t* words) {
  Mask mask = 0;
  for (int k = 0; k < kLanes / 8; ++k) {
    const __m256 eight = _mm256_load_ps(reinterpret_cast<const float*>(words) + 8 * k);
    mask |= Mask{static_cast<uint32_t>(_mm256_movemask_ps(eight))} << (8 * k);
  }
  return mask;
}

// Stores f(lane) for the active lanes.
template <class D, class F>
MC_INLINE void each_lane(LaneWarp& w, D* d, F f) {
  if (w.is_full()) {
    MC_LANES d[l] = f(l);
  } else {
    MC_LANES {
      const D value = f(l);
      d[l] = w.chosen[l] ? value : d[l];
    }
  }
}

// A predicate operand, negated if the flag of its step is set.
MC_INLINE Mask predicate(LaneWarp& w, const Step* s, uint32_t offset, uint32_t flag) {
  const Mask mask = w.mask(offset);
  return s->flags & flag ? ~mask : mask;
}

MC_INLINE void set_predicate(LaneWarp& w, uint32_t offset, Mask value) {
  Mask& mask = w.mask(offset);
  mask = (mask & ~w.active) | (value & w.active);
}

Handler find_arithmetic(const ArithmeticKey& key);
Handler find_integer(const ArithmeticKey& key);
Handler find_bits(const ArithmeticKey& key);
Handler find_compare(const ArithmeticKey& key);
Handler find_convert(const ConvertKey& key);
Handler find_convert_fp8(const ConvertKey& key);  // For those of 8-bit floats.
Handler find_load(const AccessKey& key);
Handler find_store(const AccessKey& key);
Handler find_atomic(const AtomicKey& key);
Handler find_matrix(const MatrixKey& key);
void add_flow(PlainHandlers& handlers);
void add_meetings(PlainHandlers& handlers);
void add_copies(PlainHandlers& handlers);
void add_bits(PlainHandlers& handlers);
void add_fragments(PlainHandlers& handlers);
void add_memory(PlainHandlers& handlers);
void add_counts(PlainHandlers& handlers);
void work(Launch& launch, int worker);

// ---- Leaves: flow.cc.

// Puts the present lanes into a waiting state at a step.
void wait(LaneWarp& w, Leaf::State state, const Step* at);
// Continues with another leaf of the warp.
const Step* resume(LaneWarp& w, int leaf);
// Ends a warp whose block was stopped.
const Step* stop_warp(LaneWarp& w);
// Lets lanes that wait at a join for lanes in a loop continue alone, since they may hold the lock
// for which the loop waits. False if there are no such lanes.
bool part(LaneWarp& w);
// Fills the arrays of constants, parameters and special registers.
void fill_frame(const LaneWarp& w, const Code& code, uint8_t* frame);

}  // namespace mc::ptx::MC_PTX_VARIANT

#endif  // MC_PTX_LANES_H_
