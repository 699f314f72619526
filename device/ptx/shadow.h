// SPDX-License-Identifier: Apache-2.0
//
// Shadow memory: who touched which word since the last barrier, so that races are found.
//
// Two accesses of different threads race if one of them writes and nothing orders them: a barrier
// of the block (another epoch), or a meeting of their warp (another sync count). A write that
// leaves the bytes as they are races with nothing: flags that many threads set are common.
//
// Shared memory has its last write and its last readers. The row `quiet` makes checks of reads
// cheap: a stamp there says that one more read by these lanes changes nothing, because several
// lanes of this warp read the word since the last sync already, or several warps did. Vectors of
// stamps are compared at a time.
//
// Global memory has its last write alone. The order of blocks is the executor's, so a read before
// a write of another block is seen only if it comes later.
#ifndef MC_PTX_SHADOW_H_
#define MC_PTX_SHADOW_H_

#include <cstdint>

#include "ptx/machine.h"

namespace mc::ptx {

// Words of readers.
constexpr uint32_t kManyWarps = 1U << 31;
constexpr uint32_t kManyLanes = 1U << 30;
constexpr uint32_t kThreadMask = 0x3FF;
constexpr int kSyncShift = 16;
constexpr uint32_t kReaderSyncMask = 0x3FFF;
constexpr uint32_t kWriterSyncMask = 0xFFFF;
// read_in of bytes between arrays, which no thread may access.
constexpr uint32_t kNoArray = 0xFFFFFFFF;
// Words of writers of global memory: thread (10 bits), context (12), sync count (10).
constexpr int kContextShift = 10;
constexpr uint32_t kContextMask = 0xFFF;
constexpr int kGlobalSyncShift = 22;
constexpr uint32_t kGlobalSyncMask = 0x3FF;
constexpr uint32_t kContextsMax = kContextMask + 1;

// A read of a granule by a thread and, if others of its warp read with it, by many lanes. Finds
// races and unwritten words, and records the read.
void read_shared(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
                 bool many_lanes);
// A write, before it is done; changes: the bytes will be others.
void write_shared(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
                  bool changes);
// A granule by its number from kGlobalBase on.
void read_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread);
void write_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread,
                  bool changes);
// The reads and writes of atomics: they race with plain accesses alone.
void touch_shared_atomically(Block& block, const Warp& warp, const Step* step, uint32_t granule,
                             int thread, bool is_exchange);

}  // namespace mc::ptx

#endif  // MC_PTX_SHADOW_H_
