// SPDX-License-Identifier: Apache-2.0
#include "ptx/shadow.h"

#include <algorithm>
#include <bit>

#include "core/check.h"
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

constexpr const char* kUpdateOfWritten =
    "an atomic updates what another thread wrote, with nothing between that orders them";
constexpr const char* kUpdateOfRead =
    "an atomic updates what another thread read, without a barrier between";
constexpr const char* kWriteOfUpdated =
    "a thread writes what another thread's atomic or volatile access wrote, with nothing between "
    "that orders them";
constexpr const char* kScopeOfABlock =
    "an atomic whose scope is a block's updates what another block updates";
constexpr const char* kLostUpdate =
    "a thread writes a volatile word that another thread wrote after it was read: an update is "
    "lost";
constexpr const char* kFlagWithoutFence =
    "a thread reads what another block wrote before a flag, with no fence between the two writes";

int thread_of(uint32_t who) { return static_cast<int>(who & kThreadMask); }

uint32_t lanes_of(const Block& block) { return static_cast<uint32_t>(block.program->lanes); }
uint32_t warp_of(const Block& block, uint32_t who) { return (who & kThreadMask) / lanes_of(block); }
uint32_t lane_of(const Block& block, uint32_t who) { return (who & kThreadMask) % lanes_of(block); }

LaneSet lane_set(uint32_t lane) {
  LaneSet lanes;
  lanes.words[lane / 64] = uint64_t{1} << lane % 64;
  return lanes;
}

// True if barriers order an earlier access of this block before a thread's next access.
bool is_before(const Block& block, const Warp& warp, int thread, uint32_t since, uint32_t who) {
  const uint32_t other = warp_of(block, who);
  if (other != warp.index) {
    return since < block.since ||
           (block.parts != nullptr && since < block.parts[warp.index * block.num_warps + other]);
  }
  if (since < warp.since) return true;
  const uint32_t lane = lane_of(block, static_cast<uint32_t>(thread));
  return warp.met != nullptr && since < warp.met[lane * lanes_of(block) + lane_of(block, who)];
}

// True if a release of a word orders it (order.h).
bool is_released(const Block& block, Warp& warp, uint32_t since, uint32_t who, uint32_t of_block) {
  return block.words->is_ordered(block, warp,
                                 {of_block, warp_of(block, who), lane_of(block, who), since});
}

void race(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
          uint32_t word, const char* detail) {
  // Only one of several readers is recorded, which may be the thread itself.
  const int known = thread_of(word), other = known == thread ? -1 : known;
  MC_CHECK(static_cast<uint32_t>(known) < block.threads);
  report_shared(block, warp, step, FindingKind::kSharedRace, granule, thread, other, detail);
}

// Reports a granule that is in no array; true if so.
bool is_outside(Block& block, const Warp& warp, const Step* step, uint32_t granule, int thread,
                bool is_write) {
  if (block.shared_shadow.read[granule] != kNoArray) return false;
  report_access(block, warp, step, is_write, thread, Space::kShared,
                uint64_t{granule} << block.program->granule_shift, 0);
  return true;
}

bool writes_race(const Block& block, Warp& warp, uint32_t granule, int thread) {
  const uint32_t written = block.shared_shadow.written[granule];
  const uint32_t writer = block.shared_shadow.writer[granule];
  return written >= block.since && thread_of(writer) != thread &&
         !is_before(block, warp, thread, written, writer) &&
         !is_released(block, warp, written, writer, block.name);
}

// True if a barrier of a part of the block came after a read by several warps, which are unknown.
bool has_part_after(const Block& block, const Warp& warp, uint32_t since) {
  if (block.parts == nullptr) return false;
  const uint32_t* row = block.parts + warp.index * block.num_warps;
  return std::any_of(row, row + block.num_warps, [&](uint32_t time) { return since < time; });
}

bool reads_race(const Block& block, Warp& warp, uint32_t granule, int thread) {
  const uint32_t read = block.shared_shadow.read[granule];
  const uint32_t reader = block.shared_shadow.reader[granule];
  if (read < block.since) return false;
  if (reader & kManyWarps) return !has_part_after(block, warp, read);
  const bool is_own = !(reader & kManyLanes) && thread_of(reader) == thread;
  return !is_own && !is_before(block, warp, thread, read, reader) &&
         !is_released(block, warp, read, reader, block.name);
}

// Records a write; earlier reads are no longer needed.
void record_write(SharedShadow& shadow, const Warp& warp, uint32_t granule, uint32_t writer) {
  shadow.written[granule] = warp.stamp;
  shadow.writer[granule] = writer;
  shadow.read[granule] = 0;
  shadow.quiet[granule] = 0;
}

// True for an access that returns the word's old value to its thread.
bool learns(const Step* step, Strong kind) {
  return kind != Strong::kWrite && !(step->flags & kUnread);
}

WordKey shared_word(const Block& block, uint32_t granule) { return {granule, block.number}; }

void check_read_of_shared(Block& block, Warp& warp, const Step* step, uint32_t granule,
                          int thread) {
  if (block.shared_shadow.written[granule] < block.begin) {
    report_shared(block, warp, step, FindingKind::kUnwrittenShared, granule, thread, -1,
                  "a thread reads a word that no thread of its block wrote");
  } else if (writes_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, block.shared_shadow.writer[granule], kReadAfterWrite);
  }
}

}  // namespace

void read_shared(Block& block, Warp& warp, const Step* step, uint32_t granule, int thread) {
  SharedShadow& shadow = block.shared_shadow;
  if (is_outside(block, warp, step, granule, thread, false)) return;
  check_read_of_shared(block, warp, step, granule, thread);
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
  read = warp.stamp;
  if (shadow.written[granule] >= block.since || shadow.written[granule] < block.begin) return;
  if (reader & kManyWarps) shadow.quiet[granule] = block.since;
  if ((reader & (kManyWarps | kManyLanes)) == kManyLanes) shadow.quiet[granule] = warp.since;
}

void write_shared(Block& block, Warp& warp, const Step* step, uint32_t granule, int thread,
                  bool changes) {
  SharedShadow& shadow = block.shared_shadow;
  if (is_outside(block, warp, step, granule, thread, true)) return;
  if (changes && writes_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, shadow.writer[granule], kWriteAfterWrite);
  } else if (changes && reads_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, shadow.reader[granule], kWriteAfterRead);
  }
  const uint32_t read = changes ? 0 : shadow.read[granule];
  record_write(shadow, warp, granule, static_cast<uint32_t>(thread));
  shadow.read[granule] = read;
}

void touch_shared_strongly(Block& block, Warp& warp, const Step* step, uint32_t granule, int thread,
                           Strong kind, bool changes, bool is_exchange) {
  SharedShadow& shadow = block.shared_shadow;
  const uint32_t mine = static_cast<uint32_t>(thread);
  const WordKey word = shared_word(block, granule);
  if (learns(step, kind) && !block.words->is_empty()) block.words->acquire(warp, word);
  const uint32_t written = shadow.written[granule], writer = shadow.writer[granule];
  const bool is_strong = written >= block.begin && (writer & kStrongWrite) != 0;
  const LaneSet lane = lane_set(lane_of(block, mine));
  if (kind == Strong::kRead) {
    if (is_outside(block, warp, step, granule, thread, false) || is_strong) return;
    return check_read_of_shared(block, warp, step, granule, thread);
  }
  if (kind == Strong::kWrite) {
    if (!is_strong) write_shared(block, warp, step, granule, thread, changes);
    const bool releases = block.words->release(block, warp, lane, word, false);
    if (releases || is_strong) record_write(shadow, warp, granule, mine | kStrongWrite);
    return;
  }
  if (is_outside(block, warp, step, granule, thread, true)) return;
  if (written < block.begin && !is_exchange) {
    read_shared(block, warp, step, granule, thread);  // No thread wrote the word.
  } else if (!is_strong && writes_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, writer, kUpdateOfWritten);
  } else if (changes && reads_race(block, warp, granule, thread)) {
    race(block, warp, step, granule, thread, shadow.reader[granule], kUpdateOfRead);
  }
  if (!changes && written >= block.begin) return;  // A read: a lock that was not taken.
  block.words->release(block, warp, lane, word, is_exchange);
  // After a plain write by the same thread, other threads still race with that write, at its time.
  const bool is_after_own = !is_strong && written >= block.since && thread_of(writer) == thread;
  if (!is_after_own) record_write(shadow, warp, granule, mine | kStrongWrite);
}

// ---- Global memory.
namespace {

uint32_t block_of(uint32_t who) { return who >> kBlockShift & static_cast<uint32_t>(kBlocksNamed); }

uint32_t who_of(const Block& block, int thread) {
  return block.name << kBlockShift | static_cast<uint32_t>(thread);
}

// The thread that touched a granule of a line, not by words.
uint32_t who_at(const Touch& touch, uint32_t index) {
  return touch.who + ((index - static_cast<uint32_t>(std::countr_zero(touch.mask))) >> touch.shift);
}

template <class F>
void each_bit(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

// Copies a line's touches to its words.
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

bool is_own(const Block& block, uint32_t who) { return block_of(who) == block.name; }

bool is_thread(const Block& block, uint32_t who, int thread) {
  return is_own(block, who) && thread_of(who) == thread;
}

// True if nothing orders an access of this launch before one of a thread now.
bool is_unordered(const Block& block, Warp& warp, uint32_t since, uint32_t who, int thread) {
  if (is_own(block, who) &&
      (thread_of(who) == thread || is_before(block, warp, thread, since, who))) {
    return false;
  }
  return !is_released(block, warp, since, who, block_of(who));
}

// The same for reads, of which only the last is recorded.
bool are_reads_unordered(const Block& block, Warp& warp, uint32_t since, uint32_t who, int thread) {
  // The readers of other blocks are not recorded, so all acquired releases count.
  if (is_own(block, who) && who & kManyBlocks) {
    return warp.order.known == nullptr && block.order.known == nullptr;
  }
  return is_unordered(block, warp, since, who, thread);
}

void race_global(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread,
                 uint32_t who, const char* detail) {
  MC_CHECK(who != kByWords);
  const bool is_unknown = is_thread(block, who, thread);  // Only one of several is recorded.
  report_global(block, warp, step, kGlobalBase + (granule << block.program->granule_shift), thread,
                block_of(who), is_unknown ? -1 : thread_of(who), detail);
}

// Reports a flag that the warp read earlier and that this word's writer set later without a fence.
void check_flags(Block& block, const Warp& warp, const Step* step, uint64_t granule, int thread,
                 uint32_t since, uint32_t writer) {
  for (const SeenFlag& flag : warp.order.flags) {
    const bool is_same = flag.since != 0 && block_of(flag.who) == block_of(writer) &&
                         warp_of(block, flag.who) == warp_of(block, writer);
    if (!is_same || since >= flag.since || flag.fenced > since) continue;
    return race_global(block, warp, step, granule, thread, writer, kFlagWithoutFence);
  }
}

// True for C++ atomics, which race only with plain accesses. Volatile accesses act like atomics if
// a thread waits for the word, and otherwise like plain accesses.
bool is_atomic(const Step* step) { return (step->flags & (kStrong | kVolatile)) == kStrong; }

// A read of a word that a strong access wrote.
void read_strong(Block& block, Warp& warp, const Step* step, uint64_t granule, int thread,
                 uint32_t since, uint32_t writer) {
  if (!block.words->is_empty()) block.words->acquire(warp, {granule});
  if (is_own(block, writer)) return;
  const std::optional<uint32_t> fenced = block.words->fence_before(granule);
  if (!fenced) return;
  if (!is_atomic(step) && is_unordered(block, warp, since, writer, thread)) {
    check_flags(block, warp, step, granule, thread, since, writer);
  }
  warp.order.flags[warp.order.next_flag++ % kFlagsSeen] = {writer, since, *fenced};
}

void check_reads(Block& block, Warp& warp, const Step* step, uint64_t line, const Touch& read) {
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
    if (by_words && writer & kStrongWrite) {
      return read_strong(block, warp, step, granule, thread, since, writer);
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

// Records a read of one granule, with its time.
void record_word(Block& block, const Warp& warp, uint64_t granule, uint32_t who, bool is_known) {
  uint32_t &since = block.global_shadow.read[granule],
           &reader = block.global_shadow.reader[granule];
  if (!is_known) {
    reader = who;
  } else if (!is_own(block, reader)) {
    reader = who | kManyBlocks;
  } else if (since < block.since) {
    reader = who | (reader & kManyBlocks);
  } else if (reader & kManyWarpsOfBlock || warp_of(block, reader) != warp.index) {
    reader |= kManyWarpsOfBlock;
  } else if (since < warp.since) {
    reader = who | (reader & kManyBlocks);
  } else if (thread_of(reader) != thread_of(who)) {
    reader |= kManyLanesOfWarp;
  }
  since = warp.stamp;
}

void record_words(Block& block, const Warp& warp, uint64_t line, const Touch& read) {
  Touch& touch = block.global_shadow.lines[line].read;
  const uint32_t known = touch.since < block.launch_since ? 0 : touch.mask;
  each_bit(read.mask, [&](uint32_t k) {
    record_word(block, warp, (line << kLineShift) + k, who_at(read, k), (known >> k & 1) != 0);
  });
  touch = {read.since, known | read.mask, kByWords, 0};
}

// True if a write races with earlier reads by threads of the same block.
bool races_in_block(const Block& block, Warp& warp, uint64_t granule, int thread) {
  const uint32_t since = block.global_shadow.read[granule];
  const uint32_t reader = block.global_shadow.reader[granule];
  if (since < block.since) return false;
  if (reader & kManyWarpsOfBlock) return !has_part_after(block, warp, since);
  if (!(reader & kManyLanesOfWarp)) return is_unordered(block, warp, since, reader, thread);
  return !is_before(block, warp, thread, since, reader);
}

void check_reads_of_written(Block& block, Warp& warp, const Step* step, uint64_t granule,
                            int thread) {
  const GlobalShadow& shadow = block.global_shadow;
  const Touch& read = shadow.lines[granule >> kLineShift].read;
  if (read.since < block.launch_since || !(read.mask >> (granule & 31) & 1)) return;
  const bool by_words = read.who == kByWords;
  const uint32_t reader = by_words ? shadow.reader[granule] : who_at(read, granule & 31);
  if (!is_own(block, reader) || reader & kManyBlocks) {
    if (!are_reads_unordered(block, warp, read.since, reader, thread)) return;
    return race_global(block, warp, step, granule, thread, reader, kWriteAfterRead);
  }
  block.writes_what_it_read = true;
  if (!block.reads_by_words || !races_in_block(block, warp, granule, thread)) return;
  race_global(block, warp, step, granule, thread, reader, kWriteAfterReadInBlock);
}

// The last strong read of a word by the block, null if it is not known.
SeenWord* find_seen(Block& block, uint64_t granule) {
  SeenWord* end = std::end(block.order.seen);
  SeenWord* found = std::find_if(block.order.seen, end, [&](const SeenWord& one) {
    return one.since != 0 && one.granule == granule;
  });
  return found == end ? nullptr : found;
}

void note_seen(Block& block, uint64_t granule) {
  SeenWord* known = find_seen(block, granule);
  SeenWord& entry =
      known != nullptr ? *known : block.order.seen[block.order.next_seen++ % kWordsSeen];
  entry = {granule, *block.now};
}

void record_global(Block& block, const Warp& warp, uint64_t granule, uint32_t writer) {
  Line& line = block.global_shadow.lines[granule >> kLineShift];
  line.written.mask |= 1U << (granule & 31);
  line.written.since = block.global_shadow.written[granule] = warp.stamp;
  block.global_shadow.writer[granule] = writer;
}

// The words of a line's writes, and whether the launch wrote the granule.
bool is_written(Block& block, uint64_t granule) {
  Line& line = block.global_shadow.lines[granule >> kLineShift];
  if (line.written.since < block.launch_since) {
    line.written = {block.launch_since, 0, kByWords, 0};
  }
  expand_writes(block.global_shadow, granule >> kLineShift);
  return (line.written.mask >> (granule & 31) & 1) != 0;
}

// False if nothing is released.
bool release_global(Block& block, Warp& warp, uint64_t granule, int thread, Strong kind,
                    bool is_block_wide) {
  const uint32_t lane = lane_of(block, static_cast<uint32_t>(thread));
  block.words->note_write(block, warp, granule, kind, is_block_wide);
  return block.words->release(block, warp, lane_set(lane), {granule}, false);
}

// The fault of a strong access after the last write of its word, by another thread.
const char* strong_fault(Block& block, Warp& warp, const Step* step, uint64_t granule, int thread,
                         Strong kind, bool changes) {
  const uint32_t since = block.global_shadow.written[granule];
  const uint32_t writer = block.global_shadow.writer[granule];
  if (is_thread(block, writer, thread)) return nullptr;
  const bool is_strong = (writer & kStrongWrite) != 0;
  const bool is_scoped = step->flags & kBlockScope || block.words->is_block_wide(granule);
  if (is_strong && is_scoped && !is_own(block, writer)) return kScopeOfABlock;
  if (is_strong && (kind != Strong::kWrite || is_atomic(step))) return nullptr;
  if (!is_unordered(block, warp, since, writer, thread)) return nullptr;
  if (kind == Strong::kWrite) {
    const SeenWord* seen = find_seen(block, granule);
    if (seen != nullptr) return seen->since < since ? kLostUpdate : nullptr;
    // An exchange whose result is unused is still atomic.
    const bool is_exchange = is_strong && (step->flags & kUnread) != 0;
    return changes && !is_exchange ? kWriteAfterWrite : nullptr;
  }
  if (kind == Strong::kUpdate) return kUpdateOfWritten;
  if (is_own(block, writer)) return kReadAfterWriteInBlock;
  block.words->learn(warp, block_of(writer), since);
  return nullptr;
}

}  // namespace

void read_global(Block& block, Warp& warp, const Step* step, uint64_t line, const Touch& read) {
  const Line& known = block.global_shadow.lines[line];
  if (known.written.since >= block.launch_since) check_reads(block, warp, step, line, read);
  if (block.reads_by_words) {
    record_words(block, warp, line, read);
  } else if (known.read.since < block.launch_since) {
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

void write_global(Block& block, Warp& warp, const Step* step, uint64_t granule, int thread,
                  bool changes) {
  const GlobalShadow& shadow = block.global_shadow;
  const bool is_again = is_written(block, granule);
  const uint32_t since = shadow.written[granule], writer = shadow.writer[granule];
  const bool is_strong = is_again && (writer & kStrongWrite) != 0;
  const SeenWord* seen = is_strong ? find_seen(block, granule) : nullptr;
  const bool is_seen = seen != nullptr && seen->since >= since;
  const bool is_race =
      is_again && changes && !is_seen && is_unordered(block, warp, since, writer, thread);
  if (is_race) {
    race_global(block, warp, step, granule, thread, writer,
                is_strong ? kWriteOfUpdated : kWriteAfterWrite);
  } else if (changes) {
    check_reads_of_written(block, warp, step, granule, thread);
  }
  // A plain store to a word of strong accesses counts as a strong store if a fence precedes it,
  // since it may open a lock.
  const bool opens =
      is_strong && release_global(block, warp, granule, thread, Strong::kWrite, false);
  record_global(block, warp, granule, who_of(block, thread) | (opens ? kStrongWrite : 0));
  // Reads before a write that changes the bytes are no longer needed.
  if (changes) shadow.lines[granule >> kLineShift].read.mask &= ~(1U << (granule & 31));
}

void touch_global_strongly(Block& block, Warp& warp, const Step* step, uint64_t granule, int thread,
                           Strong kind, bool changes) {
  const bool is_again = is_written(block, granule), is_block_wide = step->flags & kBlockScope;
  const uint32_t since = block.global_shadow.written[granule];
  const uint32_t writer = block.global_shadow.writer[granule];
  const bool is_read = learns(step, kind);
  if (is_read && !block.words->is_empty()) block.words->acquire(warp, {granule});
  const char* fault =
      is_again ? strong_fault(block, warp, step, granule, thread, kind, changes) : nullptr;
  if (fault != nullptr) race_global(block, warp, step, granule, thread, writer, fault);
  if (is_read) note_seen(block, granule);
  if (kind == Strong::kRead) {
    if (is_again && writer & kStrongWrite) {
      read_strong(block, warp, step, granule, thread, since, writer);
    }
    return;
  }
  if (kind == Strong::kUpdate && !changes) return;  // A read: a lock that was not taken.
  // After a plain write by the same thread, other threads still race with that write, at its time.
  const bool is_after_own = kind == Strong::kUpdate && is_again && !(writer & kStrongWrite) &&
                            is_thread(block, writer, thread);
  if (!is_after_own) record_global(block, warp, granule, who_of(block, thread) | kStrongWrite);
  release_global(block, warp, granule, thread, kind, is_block_wide);
}

}  // namespace mc::ptx
