// SPDX-License-Identifier: Apache-2.0
//
// Counts: the work of a launch's warps that determines its speed on a GPU.  A device counts if
// DeviceOptions::counts is set.
#ifndef MC_PTX_COUNTS_H_
#define MC_PTX_COUNTS_H_

#include <cstdint>

namespace mc::ptx {

// Accesses of warps to global memory. Sectors have 32 bytes, the unit in which a GPU moves them.
struct RequestCounts {
  uint64_t requests = 0;
  uint64_t sectors = 0;
};

struct Counts {
  uint64_t instructions = 0;  // Instructions of PTX, each once for a warp.
  uint64_t lanes = 0;         // Lanes that took part in them.
  RequestCounts loads, stores, atomics;
  // Shared memory has 32 banks of 4 bytes. A pass serves a word of each.
  uint64_t shared_passes = 0;
  uint64_t shared_passes_least = 0;  // Passes that the same accesses take without conflicts.

  void add(const Counts& other);
};

// The kind of an access, for the step that counts it.
enum class Counted : uint32_t { kLoad, kStore, kAtomic };

}  // namespace mc::ptx

#endif  // MC_PTX_COUNTS_H_
