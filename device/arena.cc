// SPDX-License-Identifier: Apache-2.0
//
// First fit over the range that was opened last.  PyTorch's caching allocator asks for segments of
// two MiB and more and keeps them, so there are few, and a map of the free pieces is enough.  What
// was handed out of an earlier range stays where it is, and is forgotten when it is freed.
#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include <cuda.h>

#include "mc_device.h"

namespace {

constexpr uint64_t kAlignment = 512;

class Arena {
 public:
  void open(uint64_t base, uint64_t nbytes) {
    const std::lock_guard lock(mutex_);
    ranges_.push_back({base, base + nbytes});
    free_ = {{base, nbytes}};
  }

  // 0 when there is no room.
  uint64_t take(uint64_t nbytes) {
    const std::lock_guard lock(mutex_);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [start, size] = *it;
      if (size < nbytes) continue;
      free_.erase(it);
      if (size > nbytes) free_[start + nbytes] = size - nbytes;
      return start;
    }
    return 0;
  }

  // Whether it was taken here.
  bool give_back(uint64_t start, uint64_t nbytes) {
    const std::lock_guard lock(mutex_);
    const auto holds = [&](const Range& range) {
      return range.begin <= start && start < range.end;
    };
    if (std::none_of(ranges_.begin(), ranges_.end(), holds)) return false;
    if (!holds(ranges_.back())) return true;
    auto it = free_.emplace(start, nbytes).first;
    if (auto next = std::next(it); next != free_.end() && start + nbytes == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it != free_.begin()) {
      if (auto before = std::prev(it); before->first + before->second == start) {
        before->second += it->second;
        free_.erase(it);
      }
    }
    return true;
  }

  bool is_whole() {
    const std::lock_guard lock(mutex_);
    const Range& last = ranges_.back();
    return free_ == std::map<uint64_t, uint64_t>{{last.begin, last.end - last.begin}};
  }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Range> ranges_;
  std::map<uint64_t, uint64_t> free_;  // Start to size; no two adjoin.
};

Arena arena;

uint64_t round_up(uint64_t nbytes) { return (nbytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void mc_arena_open(uint64_t base, uint64_t nbytes) { arena.open(base, nbytes); }

int mc_arena_is_whole() { return arena.is_whole() ? 1 : 0; }

void* mc_arena_malloc(size_t nbytes, int, void* stream) {
  CUdeviceptr address = arena.take(round_up(nbytes));
  if (address == 0 && cuMemAlloc(&address, nbytes) != CUDA_SUCCESS) return nullptr;
  cuMemsetD8Async(address, 0xff, nbytes, static_cast<CUstream>(stream));
  return reinterpret_cast<void*>(address);
}

void mc_arena_free(void* pointer, size_t nbytes, int, void*) {
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  if (!arena.give_back(address, round_up(nbytes))) cuMemFree(address);
}
