// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores.
#include "ptx/access.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// M: an element in memory, R: its register, N: elements.
template <class M, class R, int N>
struct Registers {
  R* d[N];

  MC_INLINE Registers(LaneWarp& w, const Step* s) {
    for (int k = 0; k < N; ++k) d[k] = w.at<R>(N == 1 ? s->d : s->list[k]);
  }
  // The element of a lane, and those behind it for the lanes behind it.
  MC_INLINE void put_row(int first, int lanes, const uint8_t* memory) {
    const M* row = reinterpret_cast<const M*>(memory);
    for (int k = 0; k < N; ++k) {
      R* to = d[k] + first;
      _Pragma("GCC ivdep") for (int l = 0; l < lanes; ++l) to[l] = static_cast<R>(row[l * N + k]);
    }
  }
  // The lanes of a run that is no row have one address, so one read of memory serves all of them.
  MC_INLINE void put_all(int first, const uint8_t* memory) {
    const M* one = reinterpret_cast<const M*>(memory);
    for (int k = 0; k < N; ++k) {
      const R value = static_cast<R>(one[k]);
      R* to = d[k] + first;
      _Pragma("GCC ivdep") for (int l = 0; l < kRun; ++l) to[l] = value;
    }
  }
  MC_INLINE void put(int lane, const uint8_t* memory) {
    const M* one = reinterpret_cast<const M*>(memory);
    for (int k = 0; k < N; ++k) d[k][lane] = static_cast<R>(one[k]);
  }
  template <class T>
  MC_INLINE void put_runs(const Run<T> (&runs)[kRuns], const uint8_t* memory) {
    if (is_one_row(runs, sizeof(M) * N)) return put_row(0, kLanes, memory + runs[0].base);
    for (int r = 0; r < kRuns; ++r) {
      const uint8_t* from = memory + runs[r].base;
      runs[r].is_row ? put_row(r * kRun, kRun, from) : put_all(r * kRun, from);
    }
  }
};

// Four words a lane, for four lanes at a time.
template <class R>
MC_INLINE void transpose_words(const uint8_t* memory, const uint32_t* at, R** d) {
  for (int l = 0; l < kLanes; l += 4) {
    auto row = [&](int k) {
      return _mm_load_ps(reinterpret_cast<const float*>(memory + at[l + k]));
    };
    __m128 r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_store_ps(reinterpret_cast<float*>(d[0] + l), r0);
    _mm_store_ps(reinterpret_cast<float*>(d[1] + l), r1);
    _mm_store_ps(reinterpret_cast<float*>(d[2] + l), r2);
    _mm_store_ps(reinterpret_cast<float*>(d[3] + l), r3);
  }
}

template <class M, class R, int N>
MC_INLINE bool load_near(LaneWarp& w, const Step* s) {
  constexpr uint32_t kBytes = sizeof(M) * N;
  const uint8_t* memory = w.block->shared;
  Registers<M, R, N> to(w, s);
  Near near;
  add_offset(w, address_operand(s), near.at);
  Run<uint32_t> runs[kRuns];
  if (w.is_full() && !(s->flags & kStrong) && find_runs(near.at, kBytes, runs) &&
      are_inside<uint32_t>(runs, 0, w.block->shared_bytes, kBytes)) {
    if (w.block->checks_races) check_read_runs(w, s, kBytes, runs);
    if (w.block->stopped) return false;
    to.put_runs(runs, memory);
    return true;
  }
  if (!check_near(w, s, {kBytes, false}, near)) return false;
  check_read_near(w, s, kBytes, near);
  if (w.block->stopped) return false;
  if (w.is_full()) {
    if constexpr (N == 4 && sizeof(M) == 4 && sizeof(R) == 4) {
      transpose_words(memory, near.at, to.d);
      return true;
    }
    if constexpr (N == 1 && sizeof(M) == 4 && sizeof(R) == 4) {
      gather(memory, near.at, reinterpret_cast<uint32_t*>(to.d[0]));
      return true;
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    if (has(w.active, l)) to.put(l, memory + near.at[l]);
  }
  return true;
}

template <class M, class R, int N>
MC_INLINE bool load_global_runs(LaneWarp& w, const Step* s) {
  constexpr uint32_t kBytes = sizeof(M) * N;
  const Block& block = *w.block;
  Run<uint64_t> runs[kRuns];
  if (!find_global_runs(w, s, kBytes, runs)) return false;
  if (block.sites[s->site].has_unwritten) note_unwritten_runs(w, s, kBytes, runs);
  if (block.checks_races && is_one_row(runs, kBytes)) {
    check_read_row(w, s, runs[0].base, kBytes, 0, kLanes);
  } else if (block.checks_races) {
    for (int r = 0; r < kRuns; ++r) {
      check_read_run(w, s, runs[r], kBytes, r * kRun);
    }
  }
  Registers<M, R, N>(w, s).put_runs(runs, block.global);
  return true;
}

template <class M, class R, int N>
MC_INLINE bool load_far(LaneWarp& w, const Step* s, Space space) {
  Far far;
  constexpr uint32_t kBytes = sizeof(M) * N;
  if (space == Space::kGlobal && load_global_runs<M, R, N>(w, s)) return true;
  if (!resolve_far(w, s, {kBytes, false}, address_operand(s), space, far)) return false;
  check_read_far(w, s, kBytes, far);
  Registers<M, R, N> to(w, s);
  for (int l = 0; l < kLanes; ++l) {
    if (has(w.active, l)) to.put(l, far.host(l));
  }
  return true;
}

template <class M, class R, int N>
[[gnu::noinline]] const Step* load_generic(LaneWarp& w, const Step* s) {
  return by_space(w, s, address_operand(s), [&](Space space) {
    return space == Space::kShared ? load_near<M, R, N>(w, s) : load_far<M, R, N>(w, s, space);
  });
}

template <class M, class R, int N>
const Step* load(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Space space = space_of(s);
  if (space == Space::kShared) return load_near<M, R, N>(w, s) ? s + 1 : stop_warp(w);
  if (space == Space::kGeneric) return load_generic<M, R, N>(w, s);
  return load_far<M, R, N>(w, s, space) ? s + 1 : stop_warp(w);
}

template <class M, class R, int N>
bool store_in(LaneWarp& w, const Step* s, Space space, const uint8_t* values) {
  constexpr Access kAccess{sizeof(M) * N, true};
  if (space == Space::kShared) {
    Near near;
    if (!resolve_near(w, s, kAccess, address_operand(s), near)) return false;
    store_near(w, s, kAccess.bytes, near, values);
    return !w.block->stopped;
  }
  Run<uint64_t> runs[kRuns];
  if (space == Space::kGlobal && find_global_runs(w, s, kAccess.bytes, runs) &&
      is_one_row(runs, kAccess.bytes) && store_row(w, kAccess.bytes, runs[0].base, values)) {
    return true;
  }
  Far far;
  if (!resolve_far(w, s, kAccess, address_operand(s), space, far)) return false;
  store_far(w, s, kAccess.bytes, far, values);
  return true;
}

template <class M, class R, int N>
const Step* store(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  alignas(32) M values[kLanes * N];
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(values);
  if constexpr (N == 1 && sizeof(M) == sizeof(R)) {
    bytes = w.frame + s->d;
  } else {
    const Registers<M, R, N> from(w, s);
    for (int k = 0; k < N; ++k) MC_LANES values[l * N + k] = static_cast<M>(from.d[k][l]);
  }
  const Space space = space_of(s);
  if (space == Space::kGeneric) {
    return by_space(w, s, address_operand(s),
                    [&](Space one) { return store_in<M, R, N>(w, s, one, bytes); });
  }
  return store_in<M, R, N>(w, s, space, bytes) ? s + 1 : stop_warp(w);
}

// .param variables of calls: an offset in the frame, c bytes for each lane, at the immediate. The
// list has the registers, b is the bytes of each and e the width of its register.
template <bool kLoads>
const Step* access_frame(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const uint64_t sign = kLoads && s->flags != 0 ? uint64_t{1} << (8 * s->b - 1) : 0;
  for (uint32_t k = 0; k < s->d; ++k) {
    for (Mask left = w.active; left != 0; left &= left - 1) {
      const uint32_t lane = static_cast<uint32_t>(lowest(left));
      uint8_t* element = w.frame + s->list[k] + lane * s->e;
      uint8_t* memory = w.frame + s->a + lane * s->c + s->immediate + k * s->b;
      uint64_t value = 0;
      memcpy(&value, kLoads ? memory : element, s->b);
      value = (value ^ sign) - sign;
      memcpy(kLoads ? element : memory, &value, kLoads ? s->e : s->b);
    }
  }
  return s + 1;
}

template <class M, class R>
Handler find_of(const AccessKey& key, bool is_store) {
  switch (key.bytes * key.elements <= 16 ? key.elements : 0) {
    MC_ROW(1, is_store ? store<M, R, 1> : load<M, R, 1>)
    MC_ROW(2, is_store ? store<M, R, 2> : load<M, R, 2>)
    MC_ROW(4, is_store ? store<M, R, 4> : load<M, R, 4>)
    default:
      return nullptr;
  }
}

// A register may be wider than the element: integers are extended.
Handler find_access(const AccessKey& key, bool is_store) {
  const bool is_signed = key.is_signed && key.bytes < key.width;
  switch (100 * key.bytes + 10 * key.width + (is_signed ? 1 : 0)) {
    MC_ROW(120, find_of<uint8_t, uint16_t>(key, is_store))
    MC_ROW(121, find_of<int8_t, int16_t>(key, is_store))
    MC_ROW(140, find_of<uint8_t, uint32_t>(key, is_store))
    MC_ROW(141, find_of<int8_t, int32_t>(key, is_store))
    MC_ROW(180, find_of<uint8_t, uint64_t>(key, is_store))
    MC_ROW(181, find_of<int8_t, int64_t>(key, is_store))
    MC_ROW(220, find_of<uint16_t, uint16_t>(key, is_store))
    MC_ROW(240, find_of<uint16_t, uint32_t>(key, is_store))
    MC_ROW(241, find_of<int16_t, int32_t>(key, is_store))
    MC_ROW(280, find_of<uint16_t, uint64_t>(key, is_store))
    MC_ROW(281, find_of<int16_t, int64_t>(key, is_store))
    MC_ROW(440, find_of<uint32_t, uint32_t>(key, is_store))
    MC_ROW(480, find_of<uint32_t, uint64_t>(key, is_store))
    MC_ROW(481, find_of<int32_t, int64_t>(key, is_store))
    MC_ROW(880, find_of<uint64_t, uint64_t>(key, is_store))
    default:
      return nullptr;
  }
}

}  // namespace

Handler find_load(const AccessKey& key) { return find_access(key, false); }
Handler find_store(const AccessKey& key) { return find_access(key, true); }

void add_memory(PlainHandlers& handlers) {
  handlers.frame_load = access_frame<true>;
  handlers.frame_store = access_frame<false>;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
