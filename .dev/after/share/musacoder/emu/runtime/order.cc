// SPDX-License-Identifier: Apache-2.0
#include "runtime/order.h"

#include <algorithm>
#include <unordered_set>

#include "runtime/check.h"

namespace mc::emu {
namespace {

constexpr size_t kVisitsMax = 1 << 20;  // A search that takes longer finds nothing.

struct Access {
  uint64_t block = 0;
  int thread = 0;
  uint32_t step = 0;
};

// True when a thread of `reader_block` that acquired the release knows of the access by it.
bool covers(const Release& release, const Access& access, uint64_t reader_block) {
  if (release.block != access.block) return false;
  const bool is_own = release.thread == access.thread;
  if (release.block == reader_block && is_own && access.step < release.here_before) return true;
  return access.step < release.block_before || (is_own && access.step < release.thread_before) ||
         (warp_of(release.thread) == warp_of(access.thread) && access.step < release.warp_before);
}

bool is_visible(const Release& release, uint64_t reader_block) {
  return release.block == reader_block || release.is_device_wide();
}

// A search of what is known, the nearest first.
class Search {
 public:
  Search(const Access& access, uint64_t reader_block)
      : access_(access), reader_block_(reader_block) {}

  // The release that covers the access, or null.
  const Release* find(const Knowledge* first, const Knowledge* second) {
    push(first, false);
    push(second, false);
    for (size_t next = 0; next < queue_.size() && next < kVisitsMax; ++next) {
      const Knowledge& known = *queue_[next].known;
      is_indirect_ = queue_[next].is_indirect;
      if (const Release* found =
              known.word == nullptr ? find_in(known.release) : find_in(*known.word, known.length)) {
        return found;
      }
      push(known.rest, is_indirect_);
      push(known.other, is_indirect_);
    }
    return nullptr;
  }

  // True when only another thread, from which this one acquired, knew of the release found.
  bool is_indirect() const { return is_indirect_; }

 private:
  struct Visit {
    const Knowledge* known = nullptr;
    bool is_indirect = false;
  };

  void push(const Knowledge* known, bool is_indirect) {
    if (known != nullptr && visited_.insert(known).second) queue_.push_back({known, is_indirect});
  }

  const Release* find_in(const Release& release) {
    return covers(release, access_, reader_block_) ? &release : nullptr;
  }

  const Release* find_in(const SyncWord& word, uint32_t length) {
    if (const auto found = word.by_block.find(access_.block); found != word.by_block.end()) {
      const std::vector<uint32_t>& indices = found->second;
      for (size_t i = indices.size(); i-- > 0;) {
        if (indices[i] < length && covers(word.log[indices[i]], access_, reader_block_)) {
          return &word.log[indices[i]];
        }
      }
    }
    uint32_t& done = done_[&word];
    for (; done < length; ++done) {
      if (!is_visible(word.log[done], reader_block_)) continue;
      push(word.log[done].known, true);
      push(word.log[done].block_known, true);
    }
    return nullptr;
  }

  Access access_;
  uint64_t reader_block_;
  std::vector<Visit> queue_;
  bool is_indirect_ = false;
  std::unordered_set<const Knowledge*> visited_;
  std::unordered_map<const SyncWord*, uint32_t> done_;  // Releases whose knowledge was pushed.
};

}  // namespace

void BlockOrder::begin_block(uint64_t block, LaunchOrder* launch) {
  block_ = block;
  launch_ = launch;
  step_ = barrier_step_ = 1;
  fence_before_ = published_before_ = 0;
  has_access_ = false;
  known_ = nullptr;
  warps_met_ = 0;
  num_seen_ = 0;
  if (!shared_words_.empty()) shared_words_.clear();
  if (is_used_) threads_.fill({});
  is_used_ = false;
}

// Accesses so far get steps below the current one.
void BlockOrder::next_step() {
  if (!has_access_) return;
  ++step_;
  has_access_ = false;
}

void BlockOrder::barrier(int num_threads) {
  ++step_;
  has_access_ = false;
  barrier_step_ = step_;
  published_before_ = fence_before_;
  warps_met_ = 0;
  if (!is_used_) return;
  for (int i = 0; i < num_threads; ++i) {
    settle(i);
    known_ = join(known_, threads_[i].known);
    threads_[i].known = nullptr;
  }
}

void BlockOrder::join_lanes(int warp, LaneSet lanes) {
  MC_EMU_CHECK(warp >= 0 && warp << warp_shift < kThreadsMax);
  warps_met_ |= 1u << warp;
  if (!is_used_) return;
  const Knowledge* joined = nullptr;
  ThreadOrder* threads = &threads_[warp << warp_shift];
  for_each_lane(lanes, [&](int lane) {
    settle(warp << warp_shift | lane);
    joined = join(joined, threads[lane].known);
  });
  for_each_lane(lanes, [&](int lane) { threads[lane].known = joined; });
}

void BlockOrder::fence(int thread, FenceScope scope) {
  settle(thread);
  next_step();
  is_used_ = true;
  ThreadOrder& self = threads_[thread];
  self.here_before = step_;
  if (scope == FenceScope::kBlock) return;
  self.fenced_before = step_;
  self.fenced_block_before = barrier_step_;
  fence_before_ = step_;
}

// --- Acquiring.

void BlockOrder::acquire(int thread, uintptr_t address, const uint64_t* cell) {
  ThreadOrder& self = threads_[thread];
  if (self.pending == address) return;
  settle(thread);
  self.pending = address;
  self.pending_cell = cell;
  is_used_ = true;
}

const SyncWord* BlockOrder::find_word(uintptr_t address) {
  if (const auto found = shared_words_.find(address); found != shared_words_.end()) {
    return &found->second;
  }
  if (!launch_->has_releases.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(launch_->mutex);
  const auto found = launch_->words.find(address);
  return found == launch_->words.end() ? nullptr : &found->second;
}

void BlockOrder::settle(int thread) {
  ThreadOrder& self = threads_[thread];
  if (self.pending == 0) return;
  const SyncWord* word = find_word(self.pending);
  const uint64_t* cell = self.pending_cell;
  self.pending = 0;
  if (word == nullptr) return;
  if (cell != nullptr) seen_[num_seen_++ % seen_.size()] = {cell, *cell};
  const std::lock_guard lock(launch_->mutex);
  const uint32_t length = static_cast<uint32_t>(word->log.size());
  const Knowledge* head = self.known;
  if (head != nullptr && head->word == word) {
    if (head->length == length) return;
    head = head->rest;  // The longer prefix holds the shorter one.
  }
  self.known = &launch_->knowledge.emplace_back(Knowledge{word, length, {}, head, nullptr});
}

bool BlockOrder::has_seen(const uint64_t* cell, uint64_t value) const {
  return std::ranges::any_of(
      seen_.begin(), seen_.begin() + static_cast<ptrdiff_t>(std::min(num_seen_, seen_.size())),
      [&](const Seen& seen) { return seen.cell == cell && seen.value == value; });
}

void BlockOrder::learn(int thread, uint64_t block, int other, uint32_t step) {
  is_used_ = true;
  const Release release{.block = block, .thread = other, .block_before = step};
  threads_[thread].known = make({nullptr, 0, release, threads_[thread].known, nullptr});
}

const Knowledge* BlockOrder::make(const Knowledge& knowledge) {
  const std::lock_guard lock(launch_->mutex);
  return &launch_->knowledge.emplace_back(knowledge);
}

const Knowledge* BlockOrder::join(const Knowledge* a, const Knowledge* b) {
  if (a == nullptr || b == nullptr || a == b) return a == nullptr ? b : a;
  return make({nullptr, 0, {}, a, b});
}

// --- Releasing.

bool BlockOrder::release(int thread, uintptr_t address, WordPlace place, bool is_exchange) {
  const bool is_lock = is_exchange && place == WordPlace::kShared;
  if (!is_used_ && !is_lock && published_before_ == 0) return false;
  settle(thread);
  ThreadOrder& self = threads_[thread];
  Release release{block_, thread};
  release.thread_before = self.fenced_before;
  release.block_before = std::max(self.fenced_block_before, published_before_);
  if (has_met(warp_of(thread))) release.warp_before = fence_before_;
  release.here_before = self.here_before;
  if (is_lock) {
    next_step();
    release.here_before = step_;
  }
  if (!release.is_device_wide() && release.here_before == 0) return false;
  is_used_ = true;

  const std::unique_lock lock(launch_->mutex);
  SyncWord& word = place == WordPlace::kShared ? shared_words_[address] : launch_->words[address];
  // Threads that read this word know the earlier releases of it anyway.
  const bool is_redundant = self.known != nullptr && self.known->word == &word;
  release.known = is_redundant ? self.known->rest : self.known;
  release.block_known = known_;
  if (!word.log.empty() && word.log.back() == release) return true;  // Spinning adds nothing.
  word.by_block[block_].push_back(static_cast<uint32_t>(word.log.size()));
  word.log.push_back(release);
  if (place == WordPlace::kDevice) launch_->has_releases.store(true, std::memory_order_release);
  return true;
}

bool BlockOrder::is_ordered(int thread, uint64_t block, int other, uint32_t step) {
  settle(thread);
  ThreadOrder& self = threads_[thread];
  if (self.known == nullptr && known_ == nullptr) return false;
  const std::lock_guard lock(launch_->mutex);
  Search search({block, other, step}, block_);
  const Release* found = search.find(self.known, known_);
  if (found == nullptr) return false;
  if (search.is_indirect()) {  // The next access that this release covers is found at once.
    Release near = *found;
    near.known = near.block_known = nullptr;
    self.known = &launch_->knowledge.emplace_back(Knowledge{nullptr, 0, near, self.known, nullptr});
  }
  return true;
}

}  // namespace mc::emu
