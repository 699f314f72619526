// SPDX-License-Identifier: Apache-2.0
//
// The care that a process which forks much takes of its own memory.  A fork copies the page table,
// and the child's end walks it again: with PyTorch in memory that is most of a spawn's cost.  In a
// build with a sanitizer, whose own memory cannot be told from ours, both functions do nothing.
#ifndef MC_SANDBOX_MEMORY_H_
#define MC_SANDBOX_MEMORY_H_

#include <cstddef>

// A sanitizer's own memory looks like any other, and cannot be given back.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define MC_SANDBOX_IS_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MC_SANDBOX_IS_SANITIZED 1
#endif

namespace mc::sandbox {

#ifdef MC_SANDBOX_IS_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// Puts the private memory that is in use into huge pages, where kernel (6.1 or newer) and settings
// allow it, so that forks take a third of the time.  Returns how many pages of 2 MiB were made.
// To be called once, after imports and before forks.
size_t compact_memory();

// Gives back the heap and other large private memory.  Nothing may be used afterwards that lives
// there: for a process that does nothing more but wait.
void forget_memory();

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_MEMORY_H_
