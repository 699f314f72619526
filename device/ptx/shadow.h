// SPDX-License-Identifier: Apache-2.0
//
// Shadow memory: records which thread touched which word at what time, to find races.
//
// A worker has a clock, which ticks when a barrier of a block opens, when lanes of a warp meet, and
// at fences and writes that order threads (order.h). `block.since` is the time of the block's last
// barrier, `warp.since` the time when all lanes of the warp met last, by a barrier of the warp: a
// shuffle orders no accesses. An access is recorded with the `stamp` of its warp, the time of its
// last tick of any kind; no two warps share such a time. It is ordered before an access of another
// thread of the block if its time is before `block.since`, and before one of the same warp if it is
// before `warp.since`. Barriers of a part of a block, and of a part of a warp, have times of their
// own for each pair of warps, and of lanes. Two accesses of different threads race if one of them
// writes, not both are atomic, and neither this nor order.h orders them. A write that does not
// change the bytes never races: flags that many threads set are common.
//
//   `clock`   1    2    3    4    5    6    7
//             |    warp.since of warps 0, 1     |
//             block.since      __syncwarp of warp 1, a barrier, warps 0, 1
//
// Shared memory has rows with a word for each granule: the last write and the last reads. The row
// `quiet` makes checks of reads cheap: its time means that one more read changes nothing, because
// several warps have read the word since that barrier, or several lanes of a warp since they met.
//
// Global memory has a Line for 32 granules, as most accesses of a warp are to whole lines: the last
// touch of each kind, and the mask of granules that it is for. Where the accesses of a line differ,
// its granules have words of their own. Reads are recorded to find writes of other blocks, whatever
// the order in which the executor runs them. Reads of the writer's own block are recorded
// separately only in kernels that, in an earlier launch, wrote what their block had read: this
// costs a word for each read. Each worker has its own shadow; undo_log.h describes how the races of
// two workers' blocks are found.
//
// Strong accesses are atomics and volatile, relaxed, acquiring and releasing loads and stores. In
// global memory they race with plain writes, and not with plain reads: many kernels read a word
// before they update it. In shared memory such a plain read is permitted only if atom.cas compares
// its value. Relaxed, acquiring and releasing accesses do not race with each other; volatile
// accesses do if an update is lost. A plain write of a word that atomics wrote counts as strong
// after a fence, since it may open a lock.
#ifndef MC_PTX_SHADOW_H_
#define MC_PTX_SHADOW_H_

#include <cstdint>

namespace mc::ptx {

struct Block;
struct Step;
struct Warp;

// The races of a read and a write of global memory in one block.
inline constexpr const char* kReadAfterWriteInBlock =
    "a thread reads what another thread of its block wrote, without a barrier between";
inline constexpr const char* kWriteAfterReadInBlock =
    "a thread writes what another thread of its block read, without a barrier between";

struct SharedShadow {
  uint32_t* written = nullptr;
  uint32_t* writer = nullptr;  // A thread, with kStrongWrite.
  uint32_t* read = nullptr;    // A time, or kNoArray.
  uint32_t* reader = nullptr;  // A thread, with kManyLanes or kManyWarps.
  uint32_t* quiet = nullptr;
};

constexpr uint32_t kManyWarps = 1U << 31;
constexpr uint32_t kManyLanes = 1U << 30;
constexpr uint32_t kThreadMask = 0x3FF;
// The time of reads of bytes between arrays, which no thread may access.
constexpr uint32_t kNoArray = 0xFFFFFFFF;
// A launch ends at kTimesEnd; if one would begin after kTimesFull, the shadow is cleared first.
constexpr uint32_t kTimesEnd = 0xF0000000, kTimesFull = 0x70000000;

// Accesses of granules of a line, whose threads follow one another: one for each `1 << shift`.
struct Touch {
  uint32_t since = 0;
  uint32_t mask = 0;
  uint32_t who = 0;  // The thread of the lowest granule, its block, and kManyBlocks; or kByWords.
  uint32_t shift = 0;
};

constexpr int kBlockShift = 10;
constexpr uint64_t kBlocksNamed = (1 << 19) - 1;  // Block numbers are taken modulo this.
// Flags beside a thread and its block: of readers, and of a writer.
constexpr uint32_t kManyBlocks = 1U << 31;
constexpr uint32_t kManyWarpsOfBlock = 1U << 30;
constexpr uint32_t kManyLanesOfWarp = 1U << 29;
constexpr uint32_t kStrongWrite = 1U << 31;
constexpr uint32_t kByWords = 0xFFFFFFFF;
constexpr int kLineShift = 5;

struct Line {
  Touch written, read;
};

struct GlobalShadow {
  Line* lines = nullptr;
  // Words of granules, valid where the line's touch is kByWords.
  uint32_t* written = nullptr;
  uint32_t* writer = nullptr;
  uint32_t* reader = nullptr;
  uint32_t* read = nullptr;  // A time; set where reads are recorded by words.
};

enum class Strong : uint8_t { kRead, kWrite, kUpdate };

// A read of a granule by a thread. Finds races and unwritten words, and records the read.
void read_shared(Block& block, Warp& warp, const Step* step, uint32_t granule, int thread);
// Called before a write; `changes`: the write changes the bytes.
void write_shared(Block& block, Warp& warp, const Step* step, uint32_t granule, int thread,
                  bool changes);
// Called for a strong access; is_exchange: by an exchange, which may take a lock.
void touch_shared_strongly(Block& block, Warp& warp, const Step* step, uint32_t granule, int thread,
                           Strong kind, bool changes, bool is_exchange);

// Called for a read of a line's granules by consecutive threads.
void read_global(Block& block, Warp& warp, const Step* step, uint64_t line, const Touch& touch);
// Records writes of granules of a line that the launch did not write before.
void add_writes(GlobalShadow& shadow, uint64_t line, const Touch& touch);
void write_global(Block& block, Warp& warp, const Step* step, uint64_t granule, int thread,
                  bool changes);
void touch_global_strongly(Block& block, Warp& warp, const Step* step, uint64_t granule, int thread,
                           Strong kind, bool changes);

}  // namespace mc::ptx

#endif  // MC_PTX_SHADOW_H_
