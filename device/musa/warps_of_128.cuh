// SPDX-License-Identifier: Apache-2.0
//
// Functions of a warp for device code of MUSA where warps have 128 threads, on the ptx device.
//
// The compiler nvcc and CUDA's headers assume warps of 32: their instructions act on groups of 32
// lanes. The functions here act on the whole warp. The backend puts this text before the
// candidate's device code, and writes "mc" for the two underscores of __shfl_sync() and the others
// there (src/eval/musa_warps.h). They use the same instructions as CUDA's functions, with the mask
// in a register named mc_warp_mask, from which the device recognises that they act on the whole
// warp (device/ptx/program.h). A full mask selects all lanes, any other mask selects among the
// first 32.
#define MC_WARP_FUNCTION static __device__ __forceinline__
#define MC_WARP_MASK(operand) ".reg .b32 mc_warp_mask; mov.b32 mc_warp_mask, " operand "; "

namespace mc_warp {

// The integer type with `bytes` bytes.
template <int bytes>
struct Integer;
template <>
struct Integer<2> {
  using Type = unsigned short;
};
template <>
struct Integer<4> {
  using Type = unsigned;
};
template <>
struct Integer<8> {
  using Type = unsigned long long;
};
template <class T>
using Bits = typename Integer<sizeof(T)>::Type;

template <class To, class From>
MC_WARP_FUNCTION To as(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// ---- Shuffles. The operand before the mask has 7-bit lane numbers.
MC_WARP_FUNCTION unsigned segments(int width) { return static_cast<unsigned>(128 - width) << 8; }
constexpr unsigned kLastLane = 127;

#define MC_WARP_SHUFFLE(mode)                                                                     \
  struct mode {                                                                                   \
    MC_WARP_FUNCTION unsigned of(unsigned mask, unsigned value, unsigned lane, unsigned limits) { \
      unsigned result;                                                                            \
      asm volatile("{ " MC_WARP_MASK("%4") "shfl.sync." #mode                                     \
                                           ".b32 %0, %1, %2, %3, mc_warp_mask; }"                 \
                   : "=r"(result)                                                                 \
                   : "r"(value), "r"(lane), "r"(limits), "r"(mask)                                \
                   : "memory");                                                                   \
      return result;                                                                              \
    }                                                                                             \
  };
MC_WARP_SHUFFLE(idx)
MC_WARP_SHUFFLE(up)
MC_WARP_SHUFFLE(down)
MC_WARP_SHUFFLE(bfly)
#undef MC_WARP_SHUFFLE

template <class Mode, class T>
MC_WARP_FUNCTION T shuffle(unsigned mask, T value, unsigned lane, unsigned limits) {
  const Bits<T> bits = as<Bits<T>>(value);
  if constexpr (sizeof(T) == 8) {
    const unsigned low = Mode::of(mask, static_cast<unsigned>(bits), lane, limits);
    const unsigned high = Mode::of(mask, static_cast<unsigned>(bits >> 32), lane, limits);
    return as<T>(static_cast<unsigned long long>(high) << 32 | low);
  } else {
    return as<T>(static_cast<Bits<T>>(Mode::of(mask, bits, lane, limits)));
  }
}

// ---- Matches.
#define MC_WARP_MATCH(integer, letter, type)                                                     \
  MC_WARP_FUNCTION unsigned match_any(unsigned mask, integer value) {                            \
    unsigned result;                                                                             \
    asm volatile("{ " MC_WARP_MASK("%2") "match.any.sync." #type " %0, %1, mc_warp_mask; }"      \
                 : "=r"(result)                                                                  \
                 : letter(value), "r"(mask)                                                      \
                 : "memory");                                                                    \
    return result;                                                                               \
  }                                                                                              \
  MC_WARP_FUNCTION unsigned match_all(unsigned mask, integer value, int* all) {                  \
    unsigned result;                                                                             \
    asm volatile(                                                                                \
        "{ .reg .pred p; " MC_WARP_MASK("%3") "match.all.sync." #type                            \
                                              " %0|p, %2, mc_warp_mask; selp.s32 %1, 1, 0, p; }" \
        : "=r"(result), "=r"(*all)                                                               \
        : letter(value), "r"(mask)                                                               \
        : "memory");                                                                             \
    return result;                                                                               \
  }
MC_WARP_MATCH(unsigned, "r", b32)
MC_WARP_MATCH(unsigned long long, "l", b64)
#undef MC_WARP_MATCH

}  // namespace mc_warp

// The parameter and return types follow CUDA's own functions.
template <class T>
MC_WARP_FUNCTION auto mcshfl_sync(unsigned mask, T value, int lane, int width = warpSize)
    -> decltype(__shfl_sync(mask, value, lane)) {
  const decltype(__shfl_sync(mask, value, lane)) given = value;
  return mc_warp::shuffle<mc_warp::idx>(mask, given, static_cast<unsigned>(lane),
                                        mc_warp::segments(width) | mc_warp::kLastLane);
}
template <class T>
MC_WARP_FUNCTION auto mcshfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize)
    -> decltype(__shfl_up_sync(mask, value, delta)) {
  const decltype(__shfl_up_sync(mask, value, delta)) given = value;
  return mc_warp::shuffle<mc_warp::up>(mask, given, delta, mc_warp::segments(width));
}
template <class T>
MC_WARP_FUNCTION auto mcshfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize)
    -> decltype(__shfl_down_sync(mask, value, delta)) {
  const decltype(__shfl_down_sync(mask, value, delta)) given = value;
  return mc_warp::shuffle<mc_warp::down>(mask, given, delta,
                                         mc_warp::segments(width) | mc_warp::kLastLane);
}
template <class T>
MC_WARP_FUNCTION auto mcshfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize)
    -> decltype(__shfl_xor_sync(mask, value, lanes)) {
  const decltype(__shfl_xor_sync(mask, value, lanes)) given = value;
  return mc_warp::shuffle<mc_warp::bfly>(mask, given, static_cast<unsigned>(lanes),
                                         mc_warp::segments(width) | mc_warp::kLastLane);
}
template <class T>
MC_WARP_FUNCTION auto mcmatch_any_sync(unsigned mask, T value)
    -> decltype(__match_any_sync(mask, value)) {
  return mc_warp::match_any(mask, mc_warp::as<mc_warp::Bits<decltype(+value)>>(+value));
}
template <class T>
MC_WARP_FUNCTION auto mcmatch_all_sync(unsigned mask, T value, int* all)
    -> decltype(__match_all_sync(mask, value, all)) {
  return mc_warp::match_all(mask, mc_warp::as<mc_warp::Bits<decltype(+value)>>(+value), all);
}

MC_WARP_FUNCTION void mcsyncwarp(unsigned mask = 0xFFFFFFFF) {
  asm volatile("{ " MC_WARP_MASK("%0") "bar.warp.sync mc_warp_mask; }" ::"r"(mask) : "memory");
}
MC_WARP_FUNCTION unsigned mcactivemask() {
  unsigned result;
  asm volatile("{ .reg .b32 mc_warp_mask; activemask.b32 mc_warp_mask; mov.b32 %0, mc_warp_mask; }"
               : "=r"(result)::"memory");
  return result;
}
MC_WARP_FUNCTION unsigned mcballot_sync(unsigned mask, int predicate) {
  unsigned result;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; " MC_WARP_MASK(
                   "%2") "vote.sync.ballot.b32 %0, p, mc_warp_mask; }"
               : "=r"(result)
               : "r"(predicate), "r"(mask)
               : "memory");
  return result;
}

#define MC_WARP_VOTE(name, mode)                                                                  \
  MC_WARP_FUNCTION int name(unsigned mask, int predicate) {                                       \
    int result;                                                                                   \
    asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; " MC_WARP_MASK(                        \
                     "%2") "vote.sync." #mode ".pred q, p, mc_warp_mask; selp.s32 %0, 1, 0, q; }" \
                 : "=r"(result)                                                                   \
                 : "r"(predicate), "r"(mask)                                                      \
                 : "memory");                                                                     \
    return result;                                                                                \
  }
MC_WARP_VOTE(mcany_sync, any)
MC_WARP_VOTE(mcall_sync, all)
MC_WARP_VOTE(mcuni_sync, uni)
#undef MC_WARP_VOTE

#define MC_WARP_REDUCE(name, T, mode)                                                   \
  MC_WARP_FUNCTION T name(unsigned mask, T value) {                                     \
    T result;                                                                           \
    asm volatile("{ " MC_WARP_MASK("%2") "redux.sync." #mode " %0, %1, mc_warp_mask; }" \
                 : "=r"(result)                                                         \
                 : "r"(value), "r"(mask)                                                \
                 : "memory");                                                           \
    return result;                                                                      \
  }
MC_WARP_REDUCE(mcreduce_add_sync, unsigned, add.u32)
MC_WARP_REDUCE(mcreduce_add_sync, int, add.s32)
MC_WARP_REDUCE(mcreduce_min_sync, unsigned, min.u32)
MC_WARP_REDUCE(mcreduce_min_sync, int, min.s32)
MC_WARP_REDUCE(mcreduce_max_sync, unsigned, max.u32)
MC_WARP_REDUCE(mcreduce_max_sync, int, max.s32)
MC_WARP_REDUCE(mcreduce_and_sync, unsigned, and.b32)
MC_WARP_REDUCE(mcreduce_or_sync, unsigned, or.b32)
MC_WARP_REDUCE(mcreduce_xor_sync, unsigned, xor.b32)
#undef MC_WARP_REDUCE
#undef MC_WARP_MASK
#undef MC_WARP_FUNCTION
