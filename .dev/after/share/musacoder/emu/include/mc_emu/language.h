// SPDX-License-Identifier: Apache-2.0
// CUDA's extensions to C++: qualifiers, coordinates, barriers, fences.
//
// Kernels and device functions are ordinary functions; `__device__` and `__constant__` variables
// are ordinary globals; `__shared__` variables are thread-local, because exactly one block runs on
// an OS thread at a time.  Coordinates are variables, not macros: host code may well declare locals
// of the same names.
#ifndef MC_EMU_LANGUAGE_H_
#define MC_EMU_LANGUAGE_H_

#include <cstring>
#include <type_traits>

#include "mc_emu/abi.h"
#include "mc_emu/vector_types.h"

// Kernels keep a symbol of their own: function attributes and findings are looked up by it.  The
// other attributes change nothing: they mark what is for the device and for the host, for the check
// of what device code calls.
#define __global__ __attribute__((noinline, noclone))
#define __device__ __attribute__((noclone))
#define __host__ __attribute__((no_profile_instrument_function))
#define __constant__
// Variables that host and device share are not emulated: a section of their own tells of them.
#define __managed__ __attribute__((section("mc_managed")))
#define __shared__ thread_local
#define __grid_constant__
// Not `inline`: that word may stand beside it, and must not stand twice.
#define __forceinline__ __attribute__((always_inline))
#define __inline_hint__
#define __noinline__            // Empty: libstdc++ writes __attribute__((__noinline__)).
#define __launch_bounds__(...)  // The rewriter lets the kernel check it.
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __cluster_dims__(...)

// A dim3 without constructors: the compiler then knows that a constant one never changes.
struct McEmuShape {
  unsigned int x, y, z;
  constexpr operator dim3() const { return dim3(x, y, z); }
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

#define MC_EMU_TLS extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))
extern "C" {
MC_EMU_TLS const uint3 threadIdx __asm__("mc_emu_thread_index");
MC_EMU_TLS const uint3 blockIdx __asm__("mc_emu_block_index");
MC_EMU_TLS const McEmuShape blockDim __asm__("mc_emu_block_dim");
MC_EMU_TLS const McEmuShape gridDim __asm__("mc_emu_grid_dim");
// 32 or 128, and no constant expression for nvcc either.
extern const int warpSize __asm__("mc_emu_warp_size") __attribute__((visibility("default")));
}
#undef MC_EMU_TLS

// --- Barriers.  The default argument is the line of the call, which tells barriers apart.

inline void __syncthreads(int line = __builtin_LINE()) {
  mc_emu_barrier(kMcEmuBarrierCount, 0, line);
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return mc_emu_barrier(kMcEmuBarrierCount, predicate, line);
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return mc_emu_barrier(kMcEmuBarrierAnd, predicate, line);
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return mc_emu_barrier(kMcEmuBarrierOr, predicate, line);
}

inline void __threadfence() { mc_emu_fence(); }
inline void __threadfence_block() { mc_emu_fence_block(); }
inline void __threadfence_system() { mc_emu_fence(); }

namespace mc_emu {

// The first statement of a kernel with __launch_bounds__; only the number of threads matters here.
template <class... Others>
inline void check_launch_bounds(unsigned long long threads_max, Others...) {
  const McEmuShape shape = blockDim;
  if (shape.x * shape.y * shape.z > threads_max) mc_emu_break_launch_bounds(threads_max);
}

}  // namespace mc_emu

// --- Time, traps.

inline long long clock64() { return static_cast<long long>(mc_emu_clock()); }
inline unsigned long long __globaltimer() { return mc_emu_nanoseconds(); }
inline void __nanosleep(unsigned) { mc_emu_pause(); }
[[noreturn]] inline void __trap() { mc_emu_trap(); }
inline void __brkpt() { mc_emu_trap(); }
inline void __prof_trigger(int) {}
inline void __threadfence_cluster() { mc_emu_fence(); }
inline void cudaTriggerProgrammaticLaunchCompletion() {}
inline void cudaGridDependencySynchronize() {}

// --- Loads and stores with cache hints are loads and stores.

#define MC_EMU_LOAD(name)     \
  template <class T>          \
  inline T name(const T* p) { \
    return *p;                \
  }
#define MC_EMU_STORE(name)              \
  template <class T, class Value>       \
  inline void name(T* p, Value value) { \
    *p = value;                         \
  }
MC_EMU_LOAD(__ldg)
MC_EMU_LOAD(__ldca)
MC_EMU_LOAD(__ldcg)
MC_EMU_LOAD(__ldcs)
MC_EMU_LOAD(__ldlu)
MC_EMU_LOAD(__ldcv)
MC_EMU_STORE(__stcg)
MC_EMU_STORE(__stcs)
MC_EMU_STORE(__stwb)
MC_EMU_STORE(__stwt)
#undef MC_EMU_LOAD
#undef MC_EMU_STORE

// --- Address spaces.  Shared memory has addresses of 32 bits beside its pointers.

inline size_t __cvta_generic_to_shared(const void* p) { return mc_emu_shared_window(p); }
inline void* __cvta_shared_to_generic(size_t p) { return mc_emu_shared_address(p); }
#define MC_EMU_SAME_ADDRESS(space)                                                               \
  inline size_t __cvta_generic_to_##space(const void* p) { return reinterpret_cast<size_t>(p); } \
  inline void* __cvta_##space##_to_generic(size_t p) { return reinterpret_cast<void*>(p); }
MC_EMU_SAME_ADDRESS(global)
MC_EMU_SAME_ADDRESS(local)
MC_EMU_SAME_ADDRESS(constant)
MC_EMU_SAME_ADDRESS(grid_constant)
#undef MC_EMU_SAME_ADDRESS
inline unsigned __isGlobal(const void* p) {
  const int space = mc_emu_space(p);
  return space == kMcEmuGlobal || space == kMcEmuConstant;
}
inline unsigned __isShared(const void* p) { return mc_emu_space(p) == kMcEmuShared; }
inline unsigned __isConstant(const void* p) { return mc_emu_space(p) == kMcEmuConstant; }
inline unsigned __isLocal(const void* p) { return mc_emu_space(p) == kMcEmuLocal; }

// --- Hints for the compiler.

#define __builtin_assume(condition) static_cast<void>(0)
#define __assume(condition) static_cast<void>(0)

// --- Inline PTX: what `asm("text" : "=r"(a) : "r"(b))` is rewritten to.

namespace mc_emu {

// An operand of an asm statement: an output where the constraint says so.
template <class T>
struct PtxOperand {
  T& target;
  bool is_output;
  bool is_input;

  McEmuPtxOperand load() const {
    McEmuPtxOperand word{0, 0};
    if (!is_input) return word;
    using Value = std::remove_cv_t<T>;
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
      word.value = static_cast<uint64_t>(target);
    } else {
      static_assert(sizeof(T) <= sizeof word, "an operand of inline PTX has at most 16 bytes");
      const Value copy = target;
      __builtin_memcpy(&word, static_cast<const void*>(&copy), sizeof(T));
    }
    return word;
  }
  void store(const McEmuPtxOperand& word) const {
    if constexpr (!std::is_const_v<T>) {
      if (!is_output) return;
      std::remove_cv_t<T> value;
      __builtin_memcpy(static_cast<void*>(&value), &word, sizeof(T));
      target = value;
    }
  }
};

template <class T>
inline PtxOperand<T> ptx_output(T& target) {
  return {target, true, false};
}
template <class T>
inline PtxOperand<T> ptx_update(T& target) {
  return {target, true, true};
}
template <class T>
inline PtxOperand<const T> ptx_input(const T& value) {
  return {value, false, true};
}

template <class... T>
inline void ptx(const char* text, int line, int is_basic, const PtxOperand<T>&... operands) {
  McEmuPtxOperand words[sizeof...(T) + 1] = {operands.load()...};
  mc_emu_ptx(text, words, static_cast<int>(sizeof...(T)), is_basic, line);
  int i = 0;
  (operands.store(words[i++]), ...);
}

}  // namespace mc_emu

#endif  // MC_EMU_LANGUAGE_H_
