// SPDX-License-Identifier: Apache-2.0
// Races and uninitialised reads in one block's shared memory.
//
// Every four-byte word has a cell that remembers its last write and two of its last reads.  Two
// accesses of different threads are ordered by a block barrier between them (`interval` differs) or,
// within a warp, by a warp-level synchronisation that both lanes took part in (`tick`).  What is not
// ordered, and not atomic on both sides, is a race when at least one is a write.  A write that leaves
// the same bytes is harmless, which is known only after it was done: `WriteSuspect`.
//
// The rules err on the silent side: a thread that exchanged atomically since the last barrier may
// hold a lock, and its accesses do not race with those of another such thread.
#ifndef MC_EMU_RUNTIME_RACE_H_
#define MC_EMU_RUNTIME_RACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mc::emu {

constexpr int kWarpLanes = 32;
constexpr int kThreadsMax = 1024;
constexpr int kWarpsMax = kThreadsMax / kWarpLanes;

enum AccessFlags : uint16_t { kWrite = 1, kAtomic = 2, kMayHoldLock = 4, kVolatile = 8 };

// One access, as far as ordering is concerned.
struct Step {
  uint32_t interval = 0;  // 0: never.
  uint32_t tick = 0;
  uint32_t pc = 0;  // Low half.
  uint16_t thread = 0;
  uint16_t flags = 0;
};

// Which lanes of a warp have synchronised with which, and when.
class WarpOrder {
 public:
  void reset();
  // All live lanes met.
  void join_all() { full_tick_ = ++tick_; }
  // The lanes of `mask` met.
  void join(uint32_t mask);
  uint32_t tick() const { return tick_; }
  // Whether what `other` did at `tick` happened before what `lane` does now.
  bool is_ordered(int lane, int other, uint32_t tick) const {
    return tick < full_tick_ || (partial_ && tick < met_[lane][other]);
  }

 private:
  uint32_t tick_ = 0;
  uint32_t full_tick_ = 0;
  bool partial_ = false;
  uint32_t met_[kWarpLanes][kWarpLanes];  // Meaningful when partial_.
};

struct Conflict {
  enum Kind { kNone, kUninitialised, kReadAfterWrite, kWriteAfterWrite, kWriteAfterRead };
  Kind kind = kNone;
  Step other;
};

class SharedChecker {
 public:
  // A block with `bytes` of shared memory starts; nothing is initialised.
  void begin_block(size_t bytes, int num_threads);
  // A block barrier was passed.
  void begin_interval() { ++interval_; }
  WarpOrder& warp(int index) { return warps_[index]; }
  uint32_t interval() const { return interval_; }

  // Whose accesses follow; to be called again after a barrier and after a warp met.
  void set_thread(int thread) {
    now_.interval = interval_;
    now_.tick = warps_[thread / kWarpLanes].tick();
    now_.thread = static_cast<uint16_t>(thread);
  }

  // Records an access of `size` bytes at `offset` and says what is wrong with it.
  // REQUIRES: offset + size <= bytes.
  [[gnu::always_inline]] Conflict access(size_t offset, size_t size, uint16_t flags, uint32_t pc) {
    Step step = now_;
    step.flags = flags;
    step.pc = pc;
    if (size == 4 && offset % 4 == 0 && (flags & kAtomic) == 0 &&
        split_in_[offset / 4] != first_interval_) {
      Cell& cell = words_[offset / 4];
      return (flags & kWrite) != 0 ? check_write(cell, step) : check_read(cell, step);
    }
    return access_any(offset, size, step);
  }

 private:
  struct Cell {
    Step write;
    Step read;
    Step other_read;
  };

  Conflict access_any(size_t offset, size_t size, const Step& step);
  Conflict check(Cell& cell, const Step& step);
  Conflict check_read(Cell& cell, const Step& step);
  Conflict check_write(Cell& cell, const Step& step);
  Cell* split(size_t word);
  bool is_racing(const Step& before, const Step& now) const;
  bool is_before(const Step& before, const Step& now) const;

  Step now_;
  uint32_t interval_ = 1;
  uint32_t first_interval_ = 1;  // Of this block.
  std::vector<Cell> words_;
  std::vector<uint32_t> split_in_;  // The block (its first interval) that split the word.
  std::vector<Cell> bytes_;         // Four for each word; used where it was split.
  WarpOrder warps_[kWarpsMax];
};

// --- The hot paths.

inline bool SharedChecker::is_before(const Step& before, const Step& now) const {
  if (before.interval < interval_ || before.thread == now.thread) return true;
  if (before.thread / kWarpLanes != now.thread / kWarpLanes) return false;
  return warps_[now.thread / kWarpLanes].is_ordered(now.thread % kWarpLanes,
                                                    before.thread % kWarpLanes, before.tick);
}

inline bool SharedChecker::is_racing(const Step& before, const Step& now) const {
  if (is_before(before, now)) return false;
  const uint16_t both = before.flags & now.flags;
  return (both & (kAtomic | kMayHoldLock)) == 0;
}

inline Conflict SharedChecker::check_read(Cell& cell, const Step& step) {
  Conflict conflict;
  if (cell.write.interval < first_interval_) {
    conflict = {Conflict::kUninitialised, {}};
    cell.write = step;  // Said once for each word.
    cell.write.interval = first_interval_;
  } else if (is_racing(cell.write, step)) {
    conflict = {Conflict::kReadAfterWrite, cell.write};
  }
  if (cell.read.thread == step.thread || is_before(cell.read, step)) {
    cell.read = step;
  } else {
    cell.other_read = step;
  }
  return conflict;
}

inline Conflict SharedChecker::check_write(Cell& cell, const Step& step) {
  Conflict conflict;
  if (is_racing(cell.write, step)) {
    conflict = {Conflict::kWriteAfterWrite, cell.write};
  } else if (is_racing(cell.read, step)) {
    conflict = {Conflict::kWriteAfterRead, cell.read};
  } else if (is_racing(cell.other_read, step)) {
    conflict = {Conflict::kWriteAfterRead, cell.other_read};
  }
  cell.write = step;
  return conflict;
}

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_RACE_H_
