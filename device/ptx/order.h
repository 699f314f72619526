// SPDX-License-Identifier: Apache-2.0
//
// Order: the happens-before order that words create between threads of a launch, by atomics,
// volatile and other strong accesses, and fences. Barriers and meetings of a warp are in shadow.h.
//
// A write of such a word *releases*, and a read of the word *acquires* its releases so far. A word
// that no thread reads afterwards orders nothing, and a release covers only these earlier accesses:
// - accesses of the lanes that executed the warp's last fence, before that fence; those of the
//   other lanes before the warp met last, and those of the block before its last barrier. A fence
//   that lanes executed before they met, or any warp before a barrier, serves all of them.
// - Without a fence of the device's scope it covers nothing for other blocks. Within a block a
//   fence of the block's scope suffices, and an exchange of a shared word (a lock) needs none.
// A warp acquires as a whole, and its block at the next barrier. A fence after a read is not
// required, since many kernels that count blocks have none there. So the analysis errs by missing a
// race.
//
// Each word has a log of its releases. A warp that acquires remembers the word and the length of
// its log, and a release what its warp had acquired: no copies. Only when two accesses would be a
// race is this graph searched for a release of the first one.
//
// Blocks that synchronise through global words run on one worker, which has one Order.
// Synchronisation through shared words concerns only one block.
#ifndef MC_PTX_ORDER_H_
#define MC_PTX_ORDER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ptx/machine.h"
#include "ptx/shadow.h"

namespace mc::ptx {

// A word of global memory or of a block's shared memory.
struct WordKey {
  uint64_t granule = 0;
  uint64_t block = UINT64_MAX;  // The number of the block, of a shared word.

  bool is_shared() const { return block != UINT64_MAX; }
  bool operator==(const WordKey&) const = default;
};

struct WordKeyHash {
  size_t operator()(const WordKey& key) const {
    return (key.granule * 0x9E3779B97F4A7C15) ^ (key.block * 0xBF58476D1CE4E5B9);
  }
};

// An access that was recorded in a shadow.
struct PastAccess {
  uint32_t block = 0, warp = 0, lane = 0, since = 0;
};

struct SyncWord;

// The knowledge of a warp: the first `length` releases of a word, or that accesses of a block
// before a time are known; and the rest.
struct Knowledge {
  const SyncWord* word = nullptr;
  size_t length = 0;
  uint32_t block = 0, before = 0;  // Meaningful where word is null.
  const Knowledge* rest = nullptr;
  const Knowledge* other = nullptr;
};

struct Release {
  uint32_t block = 0, warp = 0;
  Fence device, here;  // The accesses that it covers for others, and for its own block.
  const uint32_t* published = nullptr;  // BlockOrder's, for others.
  const Knowledge* known = nullptr;
  const Knowledge* block_known = nullptr;
};

struct SyncWord {
  std::vector<Release> log;
};

class Order {
 public:
  // True if no word was released, so that there is nothing to acquire.
  bool is_empty() const { return words_.empty(); }
  void acquire(Warp& warp, const WordKey& word);
  // The lanes write a word; is_exchange: by an exchange. False if nothing is released.
  bool release(Block& block, Warp& warp, LaneSet lanes, const WordKey& word, bool is_exchange);
  // Notes that the warp read another block's plain write that was meant as a release.
  void learn(Warp& warp, uint32_t block, uint32_t before);
  // A strong write of a word of global memory was done; is_block_wide: with the scope of a block.
  void note_write(const Block& block, const Warp& warp, uint64_t granule, Strong kind,
                  bool is_block_wide);
  // The time of the last fence before the last strong write of a word, by its writer. Nothing where
  // an atomic wrote it last: such words are data more often than flags.
  std::optional<uint32_t> fence_before(uint64_t granule) const;
  bool is_block_wide(uint64_t granule) const { return block_wide_.contains(granule); }
  // The combined knowledge of the warps that pass a barrier and of those that only arrived.
  const Knowledge* join(const Knowledge* a, const Knowledge* b);
  // A barrier makes the fences before it count for the whole block.
  void publish(Block& block, std::span<Warp* const> warps);
  // True if a release orders the access before the warp's next access.
  bool is_ordered(const Block& block, Warp& warp, const PastAccess& access);

 private:
  const Knowledge* make(const Knowledge& knowledge);

  std::unordered_map<WordKey, SyncWord, WordKeyHash> words_;
  std::unordered_map<uint64_t, uint32_t> fences_;  // Kept where loads and stores are strong.
  std::unordered_set<uint64_t> block_wide_;
  std::deque<Knowledge> knowledge_;
  std::deque<std::vector<uint32_t>> published_;
};

}  // namespace mc::ptx

#endif  // MC_PTX_ORDER_H_
