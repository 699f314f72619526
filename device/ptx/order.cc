// SPDX-License-Identifier: Apache-2.0
#include "ptx/order.h"

#include <algorithm>
#include <unordered_set>

#include "core/check.h"
#include "ptx/shadow.h"

namespace mc::ptx {
namespace {

// Beyond these everything counts as ordered.
constexpr size_t kKnowledgeMax = 1 << 20;
constexpr size_t kVisitsMax = 1 << 16;

bool is_any(const Fence& fence) { return (fence.own | fence.warp | fence.block) != 0; }
bool has(const LaneSet& lanes, uint32_t lane) { return lanes.words[lane / 64] >> lane % 64 & 1; }

bool meets(const LaneSet& a, const LaneSet& b) {
  return ((a.words[0] & b.words[0]) | (a.words[1] & b.words[1])) != 0;
}

// The part of a fence that a release by lanes covers: nothing if other lanes executed it, with
// which they did not meet since.
Fence served(const Warp& warp, const Fence& fence, const LaneSet& lanes) {
  return meets(fence.lanes, lanes) || fence.own <= warp.since ? fence : Fence{};
}

bool covers(const Fence& fence, uint32_t warp, const PastAccess& access) {
  if (access.since < fence.block) return true;
  if (access.warp != warp) return false;
  return access.since < fence.warp || (has(fence.lanes, access.lane) && access.since < fence.own);
}

// A breadth-first search of the knowledge graph.
class Search {
 public:
  Search(const PastAccess& access, uint32_t reader) : access_(access), reader_(reader) {}

  bool find(const Knowledge* first, const Knowledge* second) {
    push(first);
    push(second);
    for (size_t next = 0; next < queue_.size(); ++next) {
      if (next == kVisitsMax) return true;
      const Knowledge& known = *queue_[next];
      if (known.word == nullptr ? known.block == access_.block && access_.since < known.before
                                : find_in(*known.word, known.length)) {
        return true;
      }
      push(known.rest);
      push(known.other);
    }
    return false;
  }

 private:
  void push(const Knowledge* known) {
    if (known != nullptr && visited_.insert(known).second) queue_.push_back(known);
  }

  bool find_in(const SyncWord& word, size_t length) {
    MC_CHECK(length <= word.log.size());  // Logs only grow.
    size_t& done = done_[&word];
    for (; done < length; ++done) {
      const Release& one = word.log[done];
      const bool is_near = one.block == reader_;
      const bool is_published =
          one.published != nullptr && access_.since < one.published[access_.warp];
      if (one.block == access_.block && (is_published || covers(one.device, one.warp, access_) ||
                                         (is_near && covers(one.here, one.warp, access_)))) {
        return true;
      }
      if (!is_near && !is_any(one.device) && one.published == nullptr) continue;
      push(one.known);
      push(one.block_known);
    }
    return false;
  }

  PastAccess access_;
  uint32_t reader_;
  std::vector<const Knowledge*> queue_;
  std::unordered_set<const Knowledge*> visited_;
  std::unordered_map<const SyncWord*, size_t> done_;  // The releases that were looked at.
};

bool are_equal(const Fence& a, const Fence& b) {
  return a.own == b.own && a.warp == b.warp && a.block == b.block &&
         std::ranges::equal(a.lanes.words, b.lanes.words);
}

}  // namespace

const Knowledge* Order::make(const Knowledge& knowledge) {
  if (knowledge_.size() < kKnowledgeMax) knowledge_.push_back(knowledge);
  return &knowledge_.back();
}

void Order::acquire(Warp& warp, const WordKey& key) {
  const auto found = words_.find(key);
  if (found == words_.end()) return;
  const SyncWord* word = &found->second;
  const Knowledge* rest = warp.order.known;
  if (rest != nullptr && rest->word == word) {
    if (rest->length == word->log.size()) return;
    rest = rest->rest;  // The longer log holds the shorter one.
  }
  warp.order.known = make({.word = word, .length = word->log.size(), .rest = rest});
}

bool Order::release(Block& block, Warp& warp, LaneSet lanes, const WordKey& key, bool is_exchange) {
  Release one;
  one.block = block.name;
  one.warp = warp.index;
  one.device = served(warp, warp.order.device, lanes);
  one.published = block.order.published;
  one.here = served(warp, warp.order.here, lanes);
  if (is_exchange && key.is_shared()) {
    warp.stamp = ++*block.now;
    one.here = {lanes, warp.stamp, warp.since, block.since};
  }
  if (!is_any(one.device) && !is_any(one.here) && one.published == nullptr) return false;
  SyncWord& word = words_[key];
  // Those that read this word know its earlier releases anyway.
  const bool is_redundant = warp.order.known != nullptr && warp.order.known->word == &word;
  one.known = is_redundant ? warp.order.known->rest : warp.order.known;
  one.block_known = block.order.known;
  if (!word.log.empty()) {
    const Release& last = word.log.back();
    const bool is_same = last.block == one.block && last.warp == one.warp &&
                         last.known == one.known && last.block_known == one.block_known &&
                         last.published == one.published && are_equal(last.device, one.device) &&
                         are_equal(last.here, one.here);
    if (is_same) return true;  // A spinning warp adds no new knowledge.
  }
  word.log.push_back(one);
  return true;
}

void Order::note_write(const Block& block, const Warp& warp, uint64_t granule, Strong kind,
                       bool is_block_wide) {
  if (block.program->has_strong_words && kind == Strong::kWrite) {
    const uint32_t* published = block.order.published;
    fences_[granule] =
        std::max(warp.order.device.own, published == nullptr ? 0 : published[warp.index]);
  } else if (!fences_.empty()) {
    fences_.erase(granule);
  }
  if (is_block_wide) {
    block_wide_.insert(granule);
  } else if (!block_wide_.empty()) {
    block_wide_.erase(granule);
  }
}

std::optional<uint32_t> Order::fence_before(uint64_t granule) const {
  const auto found = fences_.find(granule);
  return found == fences_.end() ? std::nullopt : std::optional(found->second);
}

void Order::learn(Warp& warp, uint32_t block, uint32_t before) {
  const Knowledge* known = warp.order.known;
  const bool is_known = known != nullptr && known->word == nullptr && known->block == block &&
                        known->before >= before;
  if (is_known) return;
  warp.order.known = make({.block = block, .before = before, .rest = known});
}

const Knowledge* Order::join(const Knowledge* a, const Knowledge* b) {
  if (a == nullptr || b == nullptr || a == b) return a == nullptr ? b : a;
  return make({.before = 0, .rest = a, .other = b});
}

void Order::publish(Block& block, std::span<Warp* const> warps) {
  if (block.order.fenced == 0) return;
  const size_t num_warps = block.num_warps;
  std::vector<uint32_t> row(num_warps);
  const uint32_t* before = block.order.published;
  if (before != nullptr) row.assign(before, before + num_warps);
  // A fence covers its warp's accesses, and accesses of the block before its last barrier.
  std::vector<bool> is_here(num_warps);
  uint32_t of_block = 0;
  for (const Warp* warp : warps) {
    MC_CHECK(warp->index < num_warps);
    is_here[warp->index] = true;
    row[warp->index] = std::max(row[warp->index], warp->order.device.own);
    of_block = std::max(of_block, warp->order.device.block);
  }
  for (size_t k = 0; k < num_warps; ++k) {
    row[k] = std::max(row[k], is_here[k] ? of_block : block.order.fenced);
  }
  block.order.published = published_.emplace_back(std::move(row)).data();
  block.order.fenced = 0;
}

bool Order::is_ordered(const Block& block, Warp& warp, const PastAccess& access) {
  if (warp.order.known == nullptr && block.order.known == nullptr) return false;
  if (knowledge_.size() >= kKnowledgeMax) return true;
  return Search(access, block.name).find(warp.order.known, block.order.known);
}

}  // namespace mc::ptx
