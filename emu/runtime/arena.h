// SPDX-License-Identifier: Apache-2.0
// Device memory whose every allocation ends at an inaccessible page.
//
// A large range of addresses is reserved, and each allocation gets its own chunks of it with
// unmapped space around: an access past the end faults at once even in code that is not
// instrumented, and instrumented code looks up the exact bounds with two loads.  Released chunks
// stay inaccessible for a while, so late uses fault too.  Beside the range lies a shadow of one
// 64-bit record for each four bytes, committed only where kernels write.
#ifndef MC_EMU_RUNTIME_ARENA_H_
#define MC_EMU_RUNTIME_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace mc::emu {

struct Allocation {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  // Number of the last launch that wrote here: reads of memory that this launch did not write need
  // no race check.
  std::atomic<uint32_t> written_in{0};
  uint32_t first_chunk = 0;
  uint32_t num_chunks = 0;
};

// What an access check needs of the arena; constant once it was reserved.
struct ArenaView {
  static constexpr size_t kChunkBytes = size_t{1} << 20;

  uintptr_t base = 0;
  size_t bytes = 0;
  const uint32_t* slot_of_chunk = nullptr;  // Slot 0 is empty for ever.
  Allocation* table = nullptr;
  uint64_t* shadow = nullptr;

  bool contains(uintptr_t address) const { return address - base < bytes; }

  // The allocation whose chunks hold the address.  REQUIRES: contains(address).
  Allocation* find(uintptr_t address) const {
    return &table[slot_of_chunk[(address - base) / kChunkBytes]];
  }
  uint64_t* shadow_of(uintptr_t address) const { return shadow + (address - base) / 4; }
};

class Arena {
 public:
  static constexpr size_t kChunkBytes = ArenaView::kChunkBytes;
  static constexpr size_t kAlignment = 16;

  ArenaView view() const { return {base_, bytes_, slot_of_chunk_, table_, shadow_}; }

  // Reserves `bytes` of address space; false when the system refuses.
  bool reserve(size_t bytes);

  // The same, or a half of it, a quarter, and so on down to 1 GiB: where the system promises no
  // more memory than it has (vm.overcommit_memory = 2), much address space is refused.
  bool reserve_up_to(size_t bytes);

  // Both return null when space or memory ran out.  Thread-safe.
  void* allocate(size_t size);
  void* map(int fd, uint64_t offset, size_t size);

  // REQUIRES: pointer came from allocate or map, or is null.  Thread-safe.
  void release(void* pointer);

  bool contains(uintptr_t address) const { return address - base_ < bytes_; }

  // The allocation whose chunks hold the address, or null.  REQUIRES: contains(address).
  Allocation* find(uintptr_t address) const {
    return &table_[slot_of_chunk_[(address - base_) / kChunkBytes]];
  }

  // Forgets all records.
  void clear_shadow();

 private:
  static constexpr size_t kSlots = 1 << 18;

  uint32_t claim_slot();
  bool claim_chunks(size_t count, uint32_t* first);
  void publish(uint32_t slot, uintptr_t begin, size_t size, uint32_t first, uint32_t count);
  void make_inaccessible(const Allocation& allocation);

  // Constant after reserve().
  uintptr_t base_ = 0;
  size_t bytes_ = 0;
  uint32_t* slot_of_chunk_ = nullptr;  // Slot 0 is empty for ever.
  Allocation* table_ = nullptr;
  uint64_t* shadow_ = nullptr;

  // Guarded by mutex_.
  std::mutex mutex_;
  uint32_t chunks_used_ = 1;
  uint32_t slots_used_ = 1;
  std::deque<uint32_t> slots_free_;
  std::map<uint32_t, std::deque<uint32_t>> chunks_free_;  // By count; oldest first.
};

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_ARENA_H_
