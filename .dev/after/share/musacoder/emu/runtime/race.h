// SPDX-License-Identifier: Apache-2.0
// Races and uninitialised reads in one block's shared memory.
//
// Every four-byte word has a cell that remembers its last write and two of its last reads.  Two
// accesses of different threads are ordered by a block barrier between them, within a warp by a
// warp-level synchronisation that both lanes took part in (`tick`), or by a word through which they
// synchronised (order.h).  What is not ordered, and not atomic on both sides, is a race when at
// least one is a write.  A write that leaves the same bytes is harmless, which is known only after
// it was done: `WriteSuspect`.
#ifndef MC_EMU_RUNTIME_RACE_H_
#define MC_EMU_RUNTIME_RACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/lanes.h"

namespace mc::emu {

constexpr int kThreadsMax = 1024;
constexpr int kWarpsMax = kThreadsMax / 32;

enum AccessFlags : uint16_t { kWrite = 1, kAtomic = 2, kVolatile = 4 };

class BlockOrder;

// One access, as far as ordering is concerned, in one word: every word of shared memory has three.
class Step {
 public:
  Step() = default;  // Never.
  Step(uint32_t time, uint16_t tick, int thread)
      : bits_(uint64_t{time} << 32 | uint64_t{tick} << 16 | static_cast<uint64_t>(thread) << 6) {}
  Step with_flags(uint16_t flags) const { return Step(bits_ | (flags & 63)); }
  Step at_time(uint32_t time) const { return Step((bits_ & 0xFFFFFFFF) | uint64_t{time} << 32); }

  uint32_t time() const { return static_cast<uint32_t>(bits_ >> 32); }
  uint16_t tick() const { return static_cast<uint16_t>(bits_ >> 16); }
  int thread() const { return static_cast<int>(bits_ >> 6 & 1023); }
  uint16_t flags() const { return bits_ & 63; }

 private:
  explicit Step(uint64_t bits) : bits_(bits) {}
  uint64_t bits_ = 0;
};

// Which lanes of a warp have synchronised with which, and when.
class WarpOrder {
 public:
  void reset();
  // All live lanes met.
  void join_all() { full_tick_ = next_tick(); }
  // These lanes met.
  void join(LaneSet lanes);
  // Counts meetings; stops at its greatest value, from where on everything counts as ordered.
  uint16_t tick() const { return tick_; }
  // The step of `other` at `tick` happened before the step of `lane` now.
  bool is_ordered(int lane, int other, uint16_t tick) const {
    return tick < full_tick_ || tick_ == kTickMax || (partial_ && tick < met_[index(lane, other)]);
  }

 private:
  static constexpr uint16_t kTickMax = 0xFFFF;
  static size_t index(int lane, int other) {
    return static_cast<size_t>(lane << warp_shift | other);
  }
  uint16_t next_tick() { return tick_ == kTickMax ? tick_ : ++tick_; }

  uint16_t tick_ = 0;
  uint16_t full_tick_ = 0;
  bool partial_ = false;
  std::vector<uint16_t> met_;  // Ticks by lane and other lane, when partial_.
};

struct Conflict {
  enum Kind { kNone, kUninitialised, kReadAfterWrite, kWriteAfterWrite, kWriteAfterRead };
  Kind kind = kNone;
  Step other;
  uint32_t other_pc = 0;  // Low half; 0 for a read, which is not remembered with its place.
};

class SharedChecker {
 public:
  // A block with `bytes` of shared memory starts; nothing is initialised.  `order` knows how its
  // threads synchronise, and may be null.
  void begin_block(size_t bytes, int num_threads, BlockOrder* order);
  // A block barrier was passed, and accesses have steps from `step` on: what came before is
  // ordered, so warps may count anew.
  void begin_interval(int num_threads, uint32_t step) {
    barrier_time_ = begin_time_ + step;
    reset_warps(num_threads);
  }
  // The block was moved, and its order with it.
  void follow(BlockOrder* order) { order_ = order; }
  WarpOrder& warp(int index) { return warps_[index]; }

  // The thread and the step (order.h) of the accesses that follow; to be called again after a
  // barrier, after a warp met and where the step changes.  Steps of a block begin with 1.
  void set_thread(int thread, uint32_t step) {
    end_time_ = begin_time_ + step;
    now_ = Step(end_time_, warps_[warp_of(thread)].tick(), thread);
  }

  // Records a plain access of the whole word at `offset` when it is plain to see that nothing is
  // wrong with it; false when access() has to look.  REQUIRES: offset is a multiple of four.
  [[gnu::always_inline]] bool record_quickly(size_t offset, bool is_write, uint32_t pc);

  // Records an access of `size` bytes at `offset` and says what is wrong with it.
  // REQUIRES: offset + size <= the block's bytes.
  Conflict access(size_t offset, size_t size, uint16_t flags, uint32_t pc);

 private:
  struct Cell {
    Step write;
    Step read;
    Step other_read;
    uint32_t write_pc = 0;
  };

  void reset_warps(int num_threads);
  Conflict check(Cell& cell, const Step& step, uint32_t pc);
  Conflict check_read(Cell& cell, const Step& step);
  Conflict check_write(Cell& cell, const Step& step, uint32_t pc);
  Cell* split(size_t word);
  bool is_racing(const Step& before, const Step& now) const;
  bool is_before(const Step& before, const Step& now) const;

  Step now_;
  // Times count the steps of all blocks: the one of this block's step 0, of its last barrier, and
  // of its latest step.
  uint32_t begin_time_ = 1;
  uint32_t barrier_time_ = 2;
  uint32_t end_time_ = 2;
  BlockOrder* order_ = nullptr;
  std::vector<Cell> words_;
  std::vector<uint32_t> split_in_;  // The block (its first time) that split the word.
  std::vector<Cell> bytes_;         // Four for each word; used where it was split.
  WarpOrder warps_[kWarpsMax];
};

// --- The hot paths.

inline bool SharedChecker::record_quickly(size_t offset, bool is_write, uint32_t pc) {
  if (split_in_[offset / 4] == begin_time_) return false;
  Cell& cell = words_[offset / 4];
  const uint32_t written = cell.write.time();
  if (is_write) {
    const bool is_ordered = written < barrier_time_ && cell.read.time() < barrier_time_ &&
                            cell.other_read.time() < barrier_time_;
    if (!is_ordered) return false;
    cell.write = now_.with_flags(kWrite);
    cell.write_pc = pc;
    return true;
  }
  if (written < begin_time_) return false;
  if (written >= barrier_time_ && cell.write.thread() != now_.thread()) return false;
  if (cell.read.time() < barrier_time_ || cell.read.thread() == now_.thread()) {
    cell.read = now_;
  } else {
    cell.other_read = now_;
  }
  return true;
}

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_RACE_H_
