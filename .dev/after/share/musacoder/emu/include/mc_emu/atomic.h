// SPDX-License-Identifier: Apache-2.0
// CUDA's atomic functions.  They are atomic across the OS threads that run blocks.
//
// Each announces its access to the runtime (bounds, races, spinning) and then does it in code that
// is not instrumented.  `mc_emu::atomic_update` serves any trivially copyable type of 2, 4 or 8
// bytes, so headers for further types (half, bfloat16 and their pairs) build on it.
#ifndef MC_EMU_ATOMIC_H_
#define MC_EMU_ATOMIC_H_

#include <cstdint>
#include <type_traits>

#include "mc_emu/abi.h"
#include "mc_emu/language.h"

namespace mc_emu {

template <size_t kSize>
struct AtomicWord;
template <>
struct AtomicWord<1> {
  using Type = uint8_t;
};
template <>
struct AtomicWord<2> {
  using Type = uint16_t;
};
template <>
struct AtomicWord<4> {
  using Type = uint32_t;
};
template <>
struct AtomicWord<8> {
  using Type = uint64_t;
};

// Replaces *address by update(*address); returns what was there.
template <class T, class F>
__attribute__((no_sanitize("thread"))) T atomic_update(T* address, F update,
                                                       int kind = kMcEmuAtomicUpdate) {
  using Word = typename AtomicWord<sizeof(T)>::Type;
  mc_emu_atomic(address, sizeof(T), kind);
  Word* word = reinterpret_cast<Word*>(address);
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    T value;
    __builtin_memcpy(static_cast<void*>(&value), &before, sizeof(T));
    const T updated = update(value);
    Word after;
    __builtin_memcpy(&after, &updated, sizeof(T));
    if (__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return value;
    }
  }
}

template <class T>
__attribute__((no_sanitize("thread"))) T atomic_exchange(T* address, T value) {
  using Word = typename AtomicWord<sizeof(T)>::Type;
  mc_emu_atomic(address, sizeof(T), kMcEmuAtomicExchange);
  Word word;
  __builtin_memcpy(&word, &value, sizeof(T));
  const Word before = __atomic_exchange_n(reinterpret_cast<Word*>(address), word, __ATOMIC_SEQ_CST);
  T result;
  __builtin_memcpy(static_cast<void*>(&result), &before, sizeof(T));
  return result;
}

template <class T>
__attribute__((no_sanitize("thread"))) T atomic_compare_exchange(T* address, T expected, T value) {
  mc_emu_atomic(address, sizeof(T), kMcEmuAtomicExchange);
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

template <class T>
__attribute__((no_sanitize("thread"))) T atomic_add(T* address, T value) {
  mc_emu_atomic(address, sizeof(T), kMcEmuAtomicUpdate);
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}

}  // namespace mc_emu

// One family of overloads, with its block and system forms.
#define MC_EMU_ATOMIC(name, type, ...)                                                 \
  inline type name(type* address, type value) { __VA_ARGS__ }                          \
  inline type name##_block(type* address, type value) { return name(address, value); } \
  inline type name##_system(type* address, type value) { return name(address, value); }

#define MC_EMU_ATOMIC_UPDATE(name, type, expression)                                          \
  MC_EMU_ATOMIC(name, type, return mc_emu::atomic_update(address, [value](type old) -> type { \
                  return expression;                                                          \
                });)

MC_EMU_ATOMIC(atomicAdd, int, return mc_emu::atomic_add(address, value);)
MC_EMU_ATOMIC(atomicAdd, unsigned int, return mc_emu::atomic_add(address, value);)
MC_EMU_ATOMIC(atomicAdd, unsigned long long, return mc_emu::atomic_add(address, value);)
MC_EMU_ATOMIC_UPDATE(atomicAdd, float, old + value)
MC_EMU_ATOMIC_UPDATE(atomicAdd, double, old + value)
MC_EMU_ATOMIC(atomicSub, int, return mc_emu::atomic_add(address, 0 - value);)
MC_EMU_ATOMIC(atomicSub, unsigned int, return mc_emu::atomic_add(address, 0 - value);)
MC_EMU_ATOMIC_UPDATE(atomicInc, unsigned int, old >= value ? 0 : old + 1)
MC_EMU_ATOMIC_UPDATE(atomicDec, unsigned int, old == 0 || old > value ? value : old - 1)
MC_EMU_ATOMIC(atomicExch, int, return mc_emu::atomic_exchange(address, value);)
MC_EMU_ATOMIC(atomicExch, unsigned int, return mc_emu::atomic_exchange(address, value);)
MC_EMU_ATOMIC(atomicExch, unsigned long long, return mc_emu::atomic_exchange(address, value);)
MC_EMU_ATOMIC(atomicExch, float, return mc_emu::atomic_exchange(address, value);)

#define MC_EMU_ATOMIC_INTEGER(type)                                \
  MC_EMU_ATOMIC_UPDATE(atomicMin, type, value < old ? value : old) \
  MC_EMU_ATOMIC_UPDATE(atomicMax, type, value > old ? value : old) \
  MC_EMU_ATOMIC_UPDATE(atomicAnd, type, old& value)                \
  MC_EMU_ATOMIC_UPDATE(atomicOr, type, old | value)                \
  MC_EMU_ATOMIC_UPDATE(atomicXor, type, old ^ value)
MC_EMU_ATOMIC_INTEGER(int)
MC_EMU_ATOMIC_INTEGER(unsigned int)
MC_EMU_ATOMIC_INTEGER(long long)
MC_EMU_ATOMIC_INTEGER(unsigned long long)

#define MC_EMU_ATOMIC_CAS(type)                                            \
  inline type atomicCAS(type* address, type expected, type value) {        \
    return mc_emu::atomic_compare_exchange(address, expected, value);      \
  }                                                                        \
  inline type atomicCAS_block(type* address, type expected, type value) {  \
    return mc_emu::atomic_compare_exchange(address, expected, value);      \
  }                                                                        \
  inline type atomicCAS_system(type* address, type expected, type value) { \
    return mc_emu::atomic_compare_exchange(address, expected, value);      \
  }
MC_EMU_ATOMIC_CAS(int)
MC_EMU_ATOMIC_CAS(unsigned int)
MC_EMU_ATOMIC_CAS(unsigned short)
MC_EMU_ATOMIC_CAS(unsigned long long)

// Each part of a vector is updated atomically, not the whole.
inline float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
          atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w)};
}
template <class Vector>
inline auto atomicAdd_block(Vector* address, Vector value) -> decltype(value.y, value) {
  return atomicAdd(address, value);
}
template <class Vector>
inline auto atomicAdd_system(Vector* address, Vector value) -> decltype(value.y, value) {
  return atomicAdd(address, value);
}

#undef MC_EMU_ATOMIC
#undef MC_EMU_ATOMIC_UPDATE
#undef MC_EMU_ATOMIC_INTEGER
#undef MC_EMU_ATOMIC_CAS

#endif  // MC_EMU_ATOMIC_H_
