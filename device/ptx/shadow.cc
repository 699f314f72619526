// SPDX-License-Identifier: Apache-2.0
#include "ptx/shadow.h"

namespace mc::ptx {
namespace {

constexpr const char* kReadAfterWrite =
    "a thread reads what another thread wrote, without a barrier between";
constexpr const char* kWriteAfterWrite =
    "two threads write the same word, without a barrier between";
constexpr const char* kWriteAfterRead =
    "a thread writes what another thread read, without a barrier between";

uint32_t thread_of(uint32_t word) { return word & kThreadMask; }

uint32_t warp_of(const Block& block, uint32_t word) {
  return thread_of(word) / static_cast<uint32_t>(block.program->lanes);
}

uint32_t quiet_stamp(const Block& block, const Warp& warp) {
  return 1U << 31 | (block.epoch & 0xFFFF) << 15 | warp.index << 10 | (warp.sync & 0x3FF);
}

bool is_ordered(const Block& block, const Warp& warp, uint32_t writer) {
  const bool same_warp = warp_of(block, writer) == warp.index;
  return same_warp && writer >> kSyncShift != (warp.sync & kWriterSyncMask);
}

// True if the reads that a word of readers stands for race with a write by a thread.
bool reads_race(const Block& block, const Warp& warp, uint32_t reader, int thread) {
  if (reader & kManyWarps) return true;
  if (warp_of(block, reader) != warp.index) return true;
  const bool is_own = !(reader & kManyLanes) && thread_of(reader) == static_cast<uint32_t>(thread);
  if (is_own) return false;
  return (reader >> kSyncShift & kReaderSyncMask) == (warp.sync & kReaderSyncMask);
}

void race(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
          uint32_t word, const char* detail) {
  // One of several readers is known, which may be the thread itself.
  const int known = static_cast<int>(thread_of(word)), other = known == thread ? -1 : known;
  report_shared(block, warp, step, FindingKind::kSharedRace, granule, thread, other, detail);
}

void record_read(Block& block, const Warp& warp, uint32_t granule, int thread, bool many_lanes) {
  SharedShadow& shadow = block.shadow;
  uint32_t& reader = shadow.reader[granule];
  const uint32_t mine = (warp.sync & kReaderSyncMask) << kSyncShift |
                        static_cast<uint32_t>(thread) | (many_lanes ? kManyLanes : 0);
  if (shadow.read_in[granule] != block.epoch) {
    shadow.read_in[granule] = block.epoch;
    reader = mine;
  } else if (reader & kManyWarps || warp_of(block, reader) != warp.index) {
    reader |= kManyWarps;
  } else {
    const bool is_own = !(reader & kManyLanes) && thread_of(reader) == thread_of(mine);
    reader = is_own ? mine : mine | kManyLanes;
  }
  if (shadow.written_in[granule] >= block.epoch) return;
  if (reader & kManyWarps) {
    shadow.quiet[granule] = block.epoch;
  } else if (reader & kManyLanes) {
    shadow.quiet[granule] = quiet_stamp(block, warp);
  }
}

}  // namespace

void read_shared(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
                 bool many_lanes) {
  SharedShadow& shadow = block.shadow;
  const uint32_t written = shadow.written_in[granule], writer = shadow.writer[granule];
  if (shadow.read_in[granule] == kNoArray) {
    report_access(block, warp, step, false, thread, Space::kShared,
                  uint64_t{granule} << block.program->granule_shift, 0);
    return;
  }
  if (written < block.first_epoch) {
    report_shared(block, warp, step, FindingKind::kUnwrittenShared, granule, thread, -1,
                  "a thread reads a word that no thread of its block wrote");
  } else if (written == block.epoch && thread_of(writer) != static_cast<uint32_t>(thread) &&
             !is_ordered(block, warp, writer)) {
    race(block, warp, step, granule, thread, writer, kReadAfterWrite);
  }
  record_read(block, warp, granule, thread, many_lanes);
}

void write_shared(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
                  bool changes) {
  SharedShadow& shadow = block.shadow;
  if (shadow.read_in[granule] == kNoArray) {
    report_access(block, warp, step, true, thread, Space::kShared,
                  uint64_t{granule} << block.program->granule_shift, 0);
    return;
  }
  const uint32_t writer = shadow.writer[granule];
  if (changes && shadow.written_in[granule] == block.epoch &&
      thread_of(writer) != static_cast<uint32_t>(thread) && !is_ordered(block, warp, writer)) {
    race(block, warp, step, granule, thread, writer, kWriteAfterWrite);
  } else if (changes && shadow.read_in[granule] == block.epoch &&
             reads_race(block, warp, shadow.reader[granule], thread)) {
    race(block, warp, step, granule, thread, shadow.reader[granule], kWriteAfterRead);
  }
  shadow.written_in[granule] = block.epoch;
  shadow.writer[granule] =
      (warp.sync & kWriterSyncMask) << kSyncShift | static_cast<uint32_t>(thread);
  shadow.quiet[granule] = 0;
}

void touch_shared_atomically(Block& block, const Warp& warp, const Step* step, uint32_t granule,
                             int thread, bool is_exchange) {
  SharedShadow& shadow = block.shadow;
  const bool is_written = shadow.written_in[granule] >= block.first_epoch;
  if (!is_written && is_exchange && shadow.read_in[granule] != kNoArray) {
    return write_shared(block, warp, step, granule, thread, false);
  }
  if (is_written && shadow.read_in[granule] != kNoArray) return;
  read_shared(block, warp, step, granule, thread, false);
}

namespace {

// The last write of a granule of global memory, if it was in this launch and by another thread
// that nothing orders before this one.
bool is_unordered(const Block& block, const Warp& warp, uint32_t epoch, uint32_t writer,
                  int thread) {
  if (epoch < block.launch_epoch) return false;
  const bool same_block =
      (writer >> kContextShift & kContextMask) == block.context && epoch >= block.first_epoch;
  if (!same_block) return true;
  if (thread_of(writer) == static_cast<uint32_t>(thread) || epoch != block.epoch) return false;
  const bool same_warp = warp_of(block, writer) == warp.index;
  return !same_warp || writer >> kGlobalSyncShift == (warp.sync & kGlobalSyncMask);
}

void race_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread,
                 const char* detail) {
  const uint32_t writer = block.global_writer[granule];
  report_global(block, warp, step, kGlobalBase + (granule << block.program->granule_shift), thread,
                writer >> kContextShift & kContextMask, block.global_written_in[granule],
                static_cast<int>(thread_of(writer)), detail);
}

}  // namespace

void read_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread) {
  const uint32_t epoch = block.global_written_in[granule];
  if (is_unordered(block, warp, epoch, block.global_writer[granule], thread)) {
    race_global(block, warp, step, granule, thread, kReadAfterWrite);
  }
}

void write_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread,
                  bool changes) {
  const uint32_t epoch = block.global_written_in[granule];
  if (changes && is_unordered(block, warp, epoch, block.global_writer[granule], thread)) {
    race_global(block, warp, step, granule, thread, kWriteAfterWrite);
  }
  block.global_written_in[granule] = block.epoch;
  block.global_writer[granule] = (warp.sync & kGlobalSyncMask) << kGlobalSyncShift |
                                 block.context << kContextShift | static_cast<uint32_t>(thread);
}

}  // namespace mc::ptx
