// SPDX-License-Identifier: Apache-2.0
// The device that the emulator claims to be: limits of compute capability 8.0 to 9.0.
#ifndef MC_EMU_RUNTIME_DEVICE_H_
#define MC_EMU_RUNTIME_DEVICE_H_

#include <algorithm>
#include <cstddef>

namespace mc::emu {

constexpr size_t kSharedDefaultMax = 48 * 1024;  // Without cudaFuncSetAttribute.
constexpr size_t kSharedOptInMax = 227 * 1024;
constexpr size_t kSharedReserved = 1024;  // For each block.
constexpr size_t kSharedPerMultiprocessor = 228 * 1024;
constexpr size_t kMultiprocessors = 108;
constexpr size_t kThreadsPerMultiprocessor = 2048;
constexpr size_t kBlocksPerMultiprocessor = 32;

// REQUIRES: threads > 0.
constexpr size_t blocks_per_multiprocessor(size_t threads, size_t shared_bytes) {
  return std::min({kThreadsPerMultiprocessor / threads, kBlocksPerMultiprocessor,
                   kSharedPerMultiprocessor / (shared_bytes + kSharedReserved)});
}

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_DEVICE_H_
