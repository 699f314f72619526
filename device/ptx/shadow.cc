// SPDX-License-Identifier: Apache-2.0
#include "ptx/shadow.h"

#include <algorithm>
#include <bit>

#include "ptx/machine.h"
#include "ptx/order.h"

namespace mc::ptx {
namespace {

constexpr const char* kReadAfterWrite =
    "a thread reads what another thread wrote, without a barrier between";
constexpr const char* kReadOnlyOfWritten =
    "a load for read-only data (ld.global.nc, __ldg) reads what the launch wrote before";
constexpr const char* kWriteAfterWrite =
    "two threads write the same word, without a barrier between";
constexpr const char* kWriteAfterRead =
    "a thread writes what another thread read, without a barrier between";

int thread_of(uint32_t who) { return static_cast<int>(who & kThreadMask); }

uint32_t warp_of(const Block& block, uint32_t who) {
  return (who & kThreadMask) / static_cast<uint32_t>(block.program->lanes);
}

// An access of this block at a time is ordered before those of a warp now.
bool is_before(const Block& block, const Warp& warp, uint32_t since, uint32_t who) {
  return since < (warp_of(block, who) == warp.index ? warp.since : block.since);
}

void race(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
          uint32_t word, const char* detail) {
  // One of several readers is known, which may be the thread itself.
  const int known = thread_of(word), other = known == thread ? -1 : known;
  report_shared(block, warp, step, FindingKind::kSharedRace, granule, thread, other, detail);
}

// True if the granule is in no array, which is reported.
bool is_outside(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
                bool is_write) {
  if (block.shared_shadow.read[granule] != kNoArray) return false;
  report_access(block, warp, step, is_write, thread, Space::kShared,
                uint64_t{granule} << block.program->granule_shift, 0);
  return true;
}

bool writes_race(const Block& block, const Warp& warp, uint32_t granule, int thread) {
  const uint32_t written = block.shared_shadow.written[granule];
  const uint32_t writer = block.shared_shadow.writer[granule];
  return written >= block.since && thread_of(writer) != thread &&
         !is_before(block, warp, written, writer);
}

bool reads_race(const Block& block, const Warp& warp, uint32_t granule, int thread) {
  const uint32_t read = block.shared_shadow.read[granule];
  const uint32_t reader = block.shared_shadow.reader[granule];
  if (read < block.since) return false;
  if (reader & kManyWarps) return true;
  const bool is_own = !(reader & kManyLanes) && thread_of(reader) == thread;
  return !is_own && !is_before(block, warp, read, reader);
}

}  // namespace

void read_shared(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread) {
  SharedShadow& shadow = block.shared_shadow;
  if (is_outside(block, warp, step, granule, thread, false)) return;
  if (shadow.written[granule] < block.begin) {
    report_shared(block, warp, step, FindingKind::kUnwrittenShared, granule, thread, -1,
                  "a thread reads a word that no thread of its block wrote");
  } else if (writes_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, shadow.writer[granule], kReadAfterWrite);
  }
  const uint32_t mine = static_cast<uint32_t>(thread);
  uint32_t &read = shadow.read[granule], &reader = shadow.reader[granule];
  if (read < block.since) {
    reader = mine;
  } else if (reader & kManyWarps || warp_of(block, reader) != warp.index) {
    reader |= kManyWarps;
  } else if (read < warp.since) {
    reader = mine;  // The earlier reads of this warp are before all that it does now.
  } else if (reader != mine) {
    reader |= kManyLanes;
  }
  read = warp.since;
  if (shadow.written[granule] >= block.since || shadow.written[granule] < block.begin) return;
  if (reader & kManyWarps) shadow.quiet[granule] = block.since;
  if ((reader & (kManyWarps | kManyLanes)) == kManyLanes) shadow.quiet[granule] = warp.since;
}

void write_shared(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
                  bool changes) {
  SharedShadow& shadow = block.shared_shadow;
  if (is_outside(block, warp, step, granule, thread, true)) return;
  if (changes && writes_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, shadow.writer[granule], kWriteAfterWrite);
  } else if (changes && reads_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, shadow.reader[granule], kWriteAfterRead);
  }
  shadow.written[granule] = warp.since;
  shadow.writer[granule] = static_cast<uint32_t>(thread);
  shadow.quiet[granule] = 0;
}

void touch_shared_atomically(Block& block, const Warp& warp, const Step* step, uint32_t granule,
                             int thread, bool is_exchange) {
  SharedShadow& shadow = block.shared_shadow;
  if (is_outside(block, warp, step, granule, thread, is_exchange)) return;
  if (shadow.written[granule] >= block.begin) return;
  if (is_exchange) return write_shared(block, warp, step, granule, thread, false);
  read_shared(block, warp, step, granule, thread);
}

// ---- Global memory.
namespace {

uint32_t block_of(uint32_t who) { return (who & ~kManyBlocks) >> kBlockShift; }

uint32_t who_of(const Block& block, int thread) {
  return static_cast<uint32_t>(block.number % kBlocksNamed) << kBlockShift |
         static_cast<uint32_t>(thread);
}

// The thread that touched a granule of a line, not by words.
uint32_t who_at(const Touch& touch, uint32_t index) {
  return touch.who + ((index - static_cast<uint32_t>(std::countr_zero(touch.mask))) >> touch.shift);
}

template <class F>
void each_bit(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

// Words take the touches of a line.
void add_words(GlobalShadow& shadow, uint64_t line, const Touch& touch) {
  each_bit(touch.mask, [&](uint32_t k) {
    shadow.written[(line << kLineShift) + k] = touch.since;
    shadow.writer[(line << kLineShift) + k] = who_at(touch, k);
  });
}

void expand_writes(GlobalShadow& shadow, uint64_t line) {
  Touch& touch = shadow.lines[line].written;
  if (touch.who != kByWords) add_words(shadow, line, touch);
  touch.who = kByWords;
}

void expand_reads(GlobalShadow& shadow, uint64_t line) {
  Touch& touch = shadow.lines[line].read;
  each_bit(touch.mask,
           [&](uint32_t k) { shadow.reader[(line << kLineShift) + k] = who_at(touch, k); });
  touch.who = kByWords;
}

bool is_own(const Block& block, uint32_t who) {
  return block_of(who) == block.number % kBlocksNamed;
}

// True if nothing orders an access of this launch before one of a thread now.
bool is_unordered(const Block& block, const Warp& warp, uint32_t since, uint32_t who, int thread) {
  const uint32_t acquired = std::max(warp.acquired, block.acquired);
  if (is_own(block, who)) {
    // The other blocks are not known, so that all that was acquired counts.
    if (who & kManyBlocks) return acquired == 0;
    if (thread_of(who) == thread || is_before(block, warp, since, who)) return false;
  }
  return !block.launch->order->is_released(block_of(who), warp_of(block, who), since, acquired);
}

void race_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread,
                 uint32_t who, const char* detail) {
  report_global(block, warp, step, kGlobalBase + (granule << block.program->granule_shift), thread,
                block_of(who), is_own(block, who) && who & kManyBlocks ? -1 : thread_of(who),
                detail);
}

void check_reads(Block& block, const Warp& warp, const Step* step, uint64_t line,
                 const Touch& read) {
  const GlobalShadow& shadow = block.global_shadow;
  const Touch& written = shadow.lines[line].written;
  each_bit(read.mask & written.mask, [&](uint32_t k) {
    const uint64_t granule = (line << kLineShift) + k;
    const bool by_words = written.who == kByWords;
    const uint32_t since = by_words ? shadow.written[granule] : written.since;
    const uint32_t writer = by_words ? shadow.writer[granule] : who_at(written, k);
    const int thread = thread_of(who_at(read, k));
    if (step->flags & kReadOnly) {
      return race_global(block, warp, step, granule, thread, writer, kReadOnlyOfWritten);
    }
    if (!is_unordered(block, warp, since, writer, thread)) return;
    race_global(block, warp, step, granule, thread, writer,
                is_own(block, writer) ? kReadAfterWriteInBlock : kReadAfterWrite);
  });
}

// The granules of both are touched by threads of one row.
bool is_one_row(const Touch& a, const Touch& b) {
  const uint32_t first_a = static_cast<uint32_t>(std::countr_zero(a.mask)) >> a.shift;
  const uint32_t first_b = static_cast<uint32_t>(std::countr_zero(b.mask)) >> b.shift;
  return a.shift == b.shift && a.who - first_a == b.who - first_b;
}

void record_reads(GlobalShadow& shadow, uint64_t line, const Touch& read) {
  Touch& touch = shadow.lines[line].read;
  if (touch.who != kByWords) {
    const bool is_inside = (read.mask & ~touch.mask) == 0;
    if (is_inside && touch.who & kManyBlocks) return;
    if (is_one_row(touch, read)) {
      touch.mask |= read.mask;
      return;
    }
    if (touch.mask == read.mask && block_of(touch.who) != block_of(read.who)) {
      touch.who = read.who | kManyBlocks;
      touch.shift = read.shift;
      return;
    }
    if (is_inside && block_of(touch.who) == block_of(read.who)) return;
    expand_reads(shadow, line);
  }
  each_bit(read.mask, [&](uint32_t k) {
    uint32_t& reader = shadow.reader[(line << kLineShift) + k];
    const uint32_t who = who_at(read, k);
    const bool is_read = touch.mask >> k & 1;
    const bool by_many = is_read && (reader & kManyBlocks || block_of(reader) != block_of(who));
    reader = who | (by_many ? kManyBlocks : 0);
  });
  touch.mask |= read.mask;
}

}  // namespace

void read_global(Block& block, const Warp& warp, const Step* step, uint64_t line,
                 const Touch& read) {
  const Line& known = block.global_shadow.lines[line];
  if (known.written.since >= block.launch_since) check_reads(block, warp, step, line, read);
  if (known.read.since < block.launch_since) {
    block.global_shadow.lines[line].read = read;
  } else {
    record_reads(block.global_shadow, line, read);
  }
}

void add_writes(GlobalShadow& shadow, uint64_t line, const Touch& touch) {
  expand_writes(shadow, line);
  add_words(shadow, line, touch);
  shadow.lines[line].written.mask |= touch.mask;
  shadow.lines[line].written.since = touch.since;
}

void write_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread,
                  bool changes) {
  GlobalShadow& shadow = block.global_shadow;
  Line& line = shadow.lines[granule >> kLineShift];
  const uint32_t index = granule & 31, bit = 1U << index;
  if (line.written.since < block.launch_since) line.written = {warp.since, 0, kByWords, 0};
  expand_writes(shadow, granule >> kLineShift);
  uint32_t &since = shadow.written[granule], &writer = shadow.writer[granule];
  const bool is_read = line.read.since >= block.launch_since && line.read.mask & bit;
  if (changes && line.written.mask & bit && is_unordered(block, warp, since, writer, thread)) {
    race_global(block, warp, step, granule, thread, writer, kWriteAfterWrite);
  } else if (changes && is_read) {
    const bool by_words = line.read.who == kByWords;
    const uint32_t reader = by_words ? shadow.reader[granule] : who_at(line.read, index);
    const bool by_others = !is_own(block, reader) || reader & kManyBlocks;
    if (by_others && is_unordered(block, warp, line.read.since, reader, thread)) {
      race_global(block, warp, step, granule, thread, reader, kWriteAfterRead);
    }
  }
  line.written.mask |= bit;
  line.written.since = since = warp.since;
  writer = who_of(block, thread);
}

}  // namespace mc::ptx
