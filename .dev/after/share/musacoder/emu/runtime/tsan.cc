// SPDX-License-Identifier: Apache-2.0
// The functions that `-fsanitize=thread` makes the compiler call before each memory access.  The
// sanitizer's own library is never linked: these checks take its place.
//
// Outside kernels (host code of a candidate, headers of PyTorch) plain accesses cost one load and a
// branch, and atomic ones are simply done.
#include <cstdint>

#include "mc_emu/errors.h"
#include "runtime/worker.h"

using mc::emu::kAtomic;
using mc::emu::kVolatile;
using mc::emu::kWrite;
using mc::emu::Worker;

#define MC_RETURN_ADDRESS reinterpret_cast<uintptr_t>(__builtin_return_address(0))
#define MC_ALWAYS_INLINE [[gnu::always_inline]] inline

namespace {

enum class Alignment { kChecked, kUnchecked };

template <size_t kSize, uint16_t kFlags, Alignment kAlignment = Alignment::kChecked>
MC_ALWAYS_INLINE void note(void* address, uintptr_t pc) {
  Worker* worker = Worker::current();
  if (worker == nullptr) return;
  const uintptr_t a = reinterpret_cast<uintptr_t>(address);
  if (kAlignment == Alignment::kChecked && a % (kSize > 8 ? 8 : kSize) != 0) [[unlikely]] {
    worker->fail("misaligned", cudaErrorMisalignedAddress, pc,
                 "the address of an access is not a multiple of its size");
  }
  if ((kFlags & kVolatile) == 0) {
    worker->check_access(a, kSize, kFlags, pc);
    return;
  }
  worker->count_busy_access();
  // A write is a release before it is judged; a read acquires last, when nothing lets others run
  // before it happens.
  if ((kFlags & kWrite) != 0) worker->note_volatile(a, true);
  worker->check_access(a, kSize, kFlags, pc);
  if ((kFlags & kWrite) == 0) worker->note_volatile(a, false);
}

// An atomic access with one of C++'s memory orders.
template <size_t kSize>
MC_ALWAYS_INLINE void note_atomic(const volatile void* address, McEmuAtomic kind, int order,
                                  uintptr_t pc) {
  Worker* worker = Worker::current();
  if (worker == nullptr) return;
  void* p = const_cast<void*>(address);
  kind == kMcEmuAtomicLoad ? note<kSize, kAtomic>(p, pc) : note<kSize, kWrite | kAtomic>(p, pc);
  if (order >= __ATOMIC_RELEASE) worker->note_fence(mc::emu::FenceScope::kDevice);
  worker->note_atomic(reinterpret_cast<uintptr_t>(p), kind);
}

MC_ALWAYS_INLINE void note_range(void* address, size_t size, uint16_t flags, uintptr_t pc) {
  Worker* worker = Worker::current();
  if (worker == nullptr || size == 0) return;
  worker->check_access(reinterpret_cast<uintptr_t>(address), size, flags, pc);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define MC_PLAIN(size)                                                                      \
  void __tsan_read##size(void* p) { note<size, 0>(p, MC_RETURN_ADDRESS); }                  \
  void __tsan_write##size(void* p) { note<size, kWrite>(p, MC_RETURN_ADDRESS); }            \
  void __tsan_volatile_read##size(void* p) { note<size, kVolatile>(p, MC_RETURN_ADDRESS); } \
  void __tsan_volatile_write##size(void* p) {                                               \
    note<size, kWrite | kVolatile>(p, MC_RETURN_ADDRESS);                                   \
  }                                                                                         \
  void __tsan_unaligned_read##size(void* p) {                                               \
    note<size, 0, Alignment::kUnchecked>(p, MC_RETURN_ADDRESS);                             \
  }                                                                                         \
  void __tsan_unaligned_write##size(void* p) {                                              \
    note<size, kWrite, Alignment::kUnchecked>(p, MC_RETURN_ADDRESS);                        \
  }                                                                                         \
  void __tsan_unaligned_volatile_read##size(void* p) {                                      \
    note<size, kVolatile, Alignment::kUnchecked>(p, MC_RETURN_ADDRESS);                     \
  }                                                                                         \
  void __tsan_unaligned_volatile_write##size(void* p) {                                     \
    note<size, kWrite | kVolatile, Alignment::kUnchecked>(p, MC_RETURN_ADDRESS);            \
  }

MC_PLAIN(1)
MC_PLAIN(2)
MC_PLAIN(4)
MC_PLAIN(8)
MC_PLAIN(16)

void __tsan_read_range(void* p, size_t size) { note_range(p, size, 0, MC_RETURN_ADDRESS); }
void __tsan_write_range(void* p, size_t size) { note_range(p, size, kWrite, MC_RETURN_ADDRESS); }

// Memory orders arrive as integers; the strongest is always right.
#define MC_ATOMIC(bits, type)                                                                      \
  type __tsan_atomic##bits##_load(const volatile type* p, int order) {                             \
    note_atomic<sizeof(type)>(p, kMcEmuAtomicLoad, order, MC_RETURN_ADDRESS);                      \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int order) {                          \
    note_atomic<sizeof(type)>(p, kMcEmuAtomicUpdate, order, MC_RETURN_ADDRESS);                    \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* p, type v, int order) {                       \
    note_atomic<sizeof(type)>(p, kMcEmuAtomicExchange, order, MC_RETURN_ADDRESS);                  \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type v,      \
                                                    int order, int) {                              \
    note_atomic<sizeof(type)>(p, kMcEmuAtomicExchange, order, MC_RETURN_ADDRESS);                  \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type v,        \
                                                  int order, int) {                                \
    note_atomic<sizeof(type)>(p, kMcEmuAtomicExchange, order, MC_RETURN_ADDRESS);                  \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type v,         \
                                                  int order, int) {                                \
    note_atomic<sizeof(type)>(p, kMcEmuAtomicExchange, order, MC_RETURN_ADDRESS);                  \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return expected;                                                                               \
  }                                                                                                \
  MC_FETCH(bits, type, add)                                                                        \
  MC_FETCH(bits, type, sub)                                                                        \
  MC_FETCH(bits, type, and)                                                                        \
  MC_FETCH(bits, type, or)                                                                         \
  MC_FETCH(bits, type, xor)                                                                        \
  MC_FETCH(bits, type, nand)

#define MC_FETCH(bits, type, operation)                                               \
  type __tsan_atomic##bits##_fetch_##operation(volatile type* p, type v, int order) { \
    note_atomic<sizeof(type)>(p, kMcEmuAtomicUpdate, order, MC_RETURN_ADDRESS);       \
    return __atomic_fetch_##operation(p, v, __ATOMIC_SEQ_CST);                        \
  }

MC_ATOMIC(8, uint8_t)
MC_ATOMIC(16, uint16_t)
MC_ATOMIC(32, uint32_t)
MC_ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order) {
  Worker* worker = Worker::current();
  if (worker != nullptr && order >= __ATOMIC_RELEASE) {
    worker->note_fence(mc::emu::FenceScope::kDevice);
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"
#pragma GCC visibility pop
