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

  // Records an access of `size` bytes at `offset` and says what is wrong with it.
  // REQUIRES: offset + size <= bytes.
  Conflict access(size_t offset, size_t size, int thread, uint16_t flags, uint32_t pc);

 private:
  struct Cell {
    Step write;
    Step read;
    Step other_read;
  };

  Conflict check(Cell& cell, const Step& step);
  Conflict check_read(Cell& cell, const Step& step);
  Conflict check_write(Cell& cell, const Step& step);
  Cell* split(size_t word);
  bool is_racing(const Step& before, const Step& now) const;
  bool is_before(const Step& before, const Step& now) const;

  uint32_t interval_ = 1;
  uint32_t first_interval_ = 1;  // Of this block.
  std::vector<Cell> words_;
  std::vector<uint32_t> split_in_;  // The block (its first interval) that split the word.
  std::vector<Cell> bytes_;         // Four for each word; used where it was split.
  WarpOrder warps_[kWarpsMax];
};

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_RACE_H_
