// SPDX-License-Identifier: Apache-2.0
//
// Atomics. Blocks that use them on global memory run on one worker.
#include "ptx/access.h"
#include "ptx/halves.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// Each half of a pair is added separately.
template <class T>
struct Pair {
  T low, high;
};

template <class T>
MC_INLINE T sum(T a, T b) {
  if constexpr (kIsHalf<T>) return narrow<T>(widen(a) + widen(b));
  if constexpr (!kIsHalf<T>) return static_cast<T>(a + b);
}

template <class T>
MC_INLINE Pair<T> sum(Pair<T> a, Pair<T> b) {
  return {sum(a.low, b.low), sum(a.high, b.high)};
}

// A float atomic add in global memory flushes subnormal operands and results.
MC_INLINE float flushed(float x) {
  return __builtin_fabsf(x) < 0x1p-126F ? __builtin_copysignf(0.0F, x) : x;
}

template <Op O, class T>
MC_INLINE T combined(T old, T b, T c, Space space) {
  if constexpr (O == Op::kAdd && std::is_same_v<T, float>) {
    if (space == Space::kGlobal) return flushed(flushed(old) + flushed(b));
  }
  if constexpr (O == Op::kAdd) return sum(old, b);
  if constexpr (O == Op::kMin) return b < old ? b : old;
  if constexpr (O == Op::kMax) return b > old ? b : old;
  if constexpr (O == Op::kAnd) return old & b;
  if constexpr (O == Op::kOr) return old | b;
  if constexpr (O == Op::kXor) return old ^ b;
  if constexpr (O == Op::kExch) return b;
  if constexpr (O == Op::kCas) return old == b ? c : old;
  if constexpr (O == Op::kInc) return old >= b ? 0 : old + 1;
  if constexpr (O == Op::kDec) return old == 0 || old > b ? b : old - 1;
}

// check(changes) comes before the word changes.
template <Op O, class T, class F>
MC_INLINE void update(LaneWarp& w, const Step* s, uint8_t* memory, int lane, Space space, F check) {
  T old;
  memcpy(&old, memory, sizeof old);
  const T now = combined<O>(old, w.at<T>(s->b)[lane], w.at<T>(s->c)[lane], space);
  if (w.block->checks_races) check(memcmp(&old, &now, sizeof now) != 0);
  memcpy(memory, &now, sizeof now);
  if (s->d != 0) w.at<T>(s->d)[lane] = old;
}

template <Op O, class T>
bool update_near(LaneWarp& w, const Step* s) {
  Near near;
  Block& block = *w.block;
  if (!resolve_near(w, s, {sizeof(T), true}, address_operand(s), near)) return false;
  const int shift = block.program->granule_shift;
  const uint32_t per = granules(sizeof(T), shift);
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    const uint32_t first = near.at[l] >> shift;
    update<O, T>(w, s, block.shared + near.at[l], l, Space::kShared, [&](bool changes) {
      for (uint32_t k = first; k < first + per; ++k) {
        touch_shared_strongly(block, w, s, k, w.thread(l), Strong::kUpdate, changes,
                              O == Op::kExch || O == Op::kCas);
      }
    });
    if (block.stopped) return false;
  }
  return true;
}

template <Op O, class T>
bool update_far(LaneWarp& w, const Step* s, Space space) {
  Far far;
  if (!resolve_far(w, s, {sizeof(T), true}, address_operand(s), space, far)) return false;
  w.stamp = ++*w.block->now;
  // An exchange with an unused result is a store.
  const bool is_store = O == Op::kExch && (s->flags & kUnread) != 0;
  if (far.has_unwritten && !is_store) note_unwritten_lanes(w, s, sizeof(T), far);
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    if (space == Space::kGlobal && w.block->saves) save_bytes(*w.block, far.at[l], sizeof(T));
    update<O, T>(w, s, far.host(l), l, space, [&](bool changes) {
      const Strong kind = is_store ? Strong::kWrite : Strong::kUpdate;
      if (space == Space::kGlobal) touch_far(w, s, sizeof(T), far, l, kind, changes);
    });
  }
  return true;
}

template <Op O, class T>
bool update_in(LaneWarp& w, const Step* s, Space space) {
  return space == Space::kShared ? update_near<O, T>(w, s) : update_far<O, T>(w, s, space);
}

template <Op O, class T>
const Step* atomic(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Space space = space_of(s);
  if (space == Space::kGeneric) {
    return by_space(w, s, address_operand(s),
                    [&](Space one) { return update_in<O, T>(w, s, one); });
  }
  return update_in<O, T>(w, s, space) ? s + 1 : stop_warp(w);
}

template <class T>
Handler find_word(Op op) {
  switch (op) {
    MC_ROW(Op::kAdd, atomic<Op::kAdd, T>)
    MC_ROW(Op::kMin, atomic<Op::kMin, T>)
    MC_ROW(Op::kMax, atomic<Op::kMax, T>)
    MC_ROW(Op::kAnd, atomic<Op::kAnd, T>)
    MC_ROW(Op::kOr, atomic<Op::kOr, T>)
    MC_ROW(Op::kXor, atomic<Op::kXor, T>)
    MC_ROW(Op::kExch, atomic<Op::kExch, T>)
    MC_ROW(Op::kCas, atomic<Op::kCas, T>)
    MC_ROW(Op::kInc, std::is_same_v<T, uint32_t> ? atomic<Op::kInc, T> : nullptr)
    MC_ROW(Op::kDec, std::is_same_v<T, uint32_t> ? atomic<Op::kDec, T> : nullptr)
    default:
      return nullptr;
  }
}

}  // namespace

Handler find_atomic(const AtomicKey& key) {
  const bool is_sum = key.op == Op::kAdd;
  switch (key.type) {
    MC_ROW(Type::kB16, key.op == Op::kCas ? atomic<Op::kCas, uint16_t> : nullptr)
    case Type::kB32:
      MC_ROW(Type::kU32, find_word<uint32_t>(key.op))
      MC_ROW(Type::kS32, find_word<int32_t>(key.op))
    case Type::kB64:
      MC_ROW(Type::kU64, find_word<uint64_t>(key.op))
      MC_ROW(Type::kS64, find_word<int64_t>(key.op))
      MC_ROW(Type::kF32, is_sum ? atomic<Op::kAdd, float> : nullptr)
      MC_ROW(Type::kF64, is_sum ? atomic<Op::kAdd, double> : nullptr)
      MC_ROW(Type::kF16, is_sum ? atomic<Op::kAdd, F16> : nullptr)
      MC_ROW(Type::kBf16, is_sum ? atomic<Op::kAdd, Bf16> : nullptr)
      MC_ROW(Type::kF16x2, is_sum ? atomic<Op::kAdd, Pair<F16>> : nullptr)
      MC_ROW(Type::kBf16x2, is_sum ? atomic<Op::kAdd, Pair<Bf16>> : nullptr)
    default:
      return nullptr;
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
