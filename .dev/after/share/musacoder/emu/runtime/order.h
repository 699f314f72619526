// SPDX-License-Identifier: Apache-2.0
// Happens-before between threads of a launch, by the words through which they synchronise.
//
// Barriers and warp operations are counted elsewhere (race.h, worker.h).  Here is what remains:
// atomics, volatile accesses and fences.  A thread that writes such a word *releases*: a thread
// that reads the word afterwards *acquires*, and knows what the release makes visible.  A dummy
// word orders nothing but those who read it later, and a release covers only what came before it.
//
// The rules are CUDA's, where they err on the silent side:
// - A release covers what the thread's last fence came after: the thread's own accesses, those of
//   its block before the last barrier, and those of its warp where the warp has synchronised.  A
//   fence that another thread of the block executed before a barrier serves the whole block.
// - Without a fence nothing is visible to other blocks.  Within a block, an exchange of a shared
//   word (a lock) needs no fence, and __threadfence_block suffices.
// - Every read of a released word acquires; CUDA would want another fence behind it.
//
// Theory of operation.  Each word has a log of its releases.  A thread that acquires remembers the
// word and the length of its log, and a release remembers what the thread had acquired: both cost a
// few instructions and no copy.  Only when two accesses would be a race is this graph searched for
// a release of the first one.  Callbacks come before the access, so an acquisition is completed
// (`settle`) at the thread's next event: what was released meanwhile counts as seen.
//
// Steps count the barriers, fences and releases of a block; an access is known by its block,
// thread and step.
#ifndef MC_EMU_RUNTIME_ORDER_H_
#define MC_EMU_RUNTIME_ORDER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/race.h"

namespace mc::emu {

struct Knowledge;

// A release.  The limits are steps of its block, exclusive; zero is nothing.
struct Release {
  uint64_t block = 0;
  int thread = 0;
  uint32_t block_before = 0;   // Accesses of any thread of the block.
  uint32_t warp_before = 0;    // Accesses of the thread's warp.
  uint32_t thread_before = 0;  // Accesses of the thread.
  uint32_t here_before = 0;    // Accesses of the thread, as threads of its own block see them.
  const Knowledge* known = nullptr;  // The thread's knowledge, and what its block did.
  const Knowledge* block_known = nullptr;

  bool is_device_wide() const { return block_before + warp_before + thread_before != 0; }
  bool operator==(const Release&) const = default;
};

// A word's releases, first to last.
struct SyncWord {
  std::vector<Release> log;
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_block;  // Indices of the log.
};

// The knowledge of a thread: the first `length` releases of a word, or one release, and the rest.
struct Knowledge {
  const SyncWord* word = nullptr;
  uint32_t length = 0;
  Release release;  // Meaningful where word is null.
  const Knowledge* rest = nullptr;
  const Knowledge* other = nullptr;
};

// The words and the knowledge of one launch.  All members are guarded by `mutex`, except that
// Knowledge never changes.
struct LaunchOrder {
  std::mutex mutex;
  std::unordered_map<uintptr_t, SyncWord> words;  // In device memory, by address.
  std::deque<Knowledge> knowledge;
  std::atomic<bool> has_releases{false};
};

enum class FenceScope { kBlock, kDevice };
enum class WordPlace { kShared, kDevice };

// The synchronisation of one block.
class BlockOrder {
 public:
  void begin_block(uint64_t block, LaunchOrder* launch);

  // The step that accesses are recorded with from here on.
  uint32_t step() const { return step_; }
  // Accesses before this step are ordered by a barrier.
  uint32_t barrier_step() const { return barrier_step_; }
  // True when lanes of the warp have met since the last barrier.
  bool has_met(int warp) const { return (warps_met_ >> warp & 1) != 0; }
  uint64_t block() const { return block_; }
  // An access that is not atomic was recorded with the current step.
  void note_access() { has_access_ = true; }

  void barrier(int num_threads);
  // The lanes of the warp met; `warp` is the index of the warp.
  void join_lanes(int warp, LaneSet lanes);
  void fence(int thread, FenceScope scope);

  // The thread reads a word that may have been released.  `cell` is the record of a word in device
  // memory, or null.
  void acquire(int thread, uintptr_t address, const uint64_t* cell);
  // Completes the last acquisition.
  void settle(int thread);

  // True when a write of a word by the thread would release something to other blocks.
  bool has_release(int thread) const {
    return threads_[thread].fenced_before != 0 || published_before_ != 0;
  }
  // The thread writes a word; false where that releases nothing.
  bool release(int thread, uintptr_t address, WordPlace place, bool is_exchange);

  // True when the record `value` of the cell is what the block has lately read there.
  bool has_seen(const uint64_t* cell, uint64_t value) const;

  // The thread read a plain write of another block that was meant as a release.
  void learn(int thread, uint64_t block, int other, uint32_t step);

  // True when the other thread's access at `step` happened before what `thread` does now, by a
  // release.
  bool is_ordered(int thread, uint64_t block, int other, uint32_t step);

 private:
  struct ThreadOrder {
    const Knowledge* known = nullptr;
    uintptr_t pending = 0;  // The address of an acquisition that is not complete.
    const uint64_t* pending_cell = nullptr;
    uint32_t fenced_before = 0;        // Own accesses before the last device-wide fence.
    uint32_t fenced_block_before = 0;  // Those of the block.
    uint32_t here_before = 0;          // Own accesses before the last fence of any kind.
  };
  struct Seen {
    const uint64_t* cell = nullptr;
    uint64_t value = 0;
  };

  void next_step();
  const SyncWord* find_word(uintptr_t address);
  const Knowledge* make(const Knowledge& knowledge);
  const Knowledge* join(const Knowledge* a, const Knowledge* b);

  uint64_t block_ = 0;
  LaunchOrder* launch_ = nullptr;
  uint32_t step_ = 1;
  uint32_t barrier_step_ = 1;
  uint32_t fence_before_ = 0;      // Accesses before the last device-wide fence of any thread.
  uint32_t published_before_ = 0;  // The same, at the last barrier.
  bool has_access_ = false;
  bool is_used_ = false;  // Some thread has something in threads_.
  const Knowledge* known_ = nullptr;
  uint32_t warps_met_ = 0;  // One bit for each warp.
  std::unordered_map<uintptr_t, SyncWord> shared_words_;
  std::array<Seen, 64> seen_;
  size_t num_seen_ = 0;
  std::array<ThreadOrder, kThreadsMax> threads_;
};

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_ORDER_H_
