// SPDX-License-Identifier: Apache-2.0
// Device memory whose every allocation ends at an inaccessible page.
//
// A large range of addresses is reserved, and each allocation gets its own chunks of it with
// unmapped space around: an access past the end faults at once even in code that is not
// instrumented, and instrumented code looks up the exact bounds with two loads.  Released chunks
// stay inaccessible for a while, so late uses fault too.  Beside the range lie a shadow of one
// 64-bit record for each four bytes, and one byte for each byte that says where its value came from
// (Origin); both are committed only where something is written.
//
// A closed arena is inaccessible to host code, as a GPU's memory is: launches open all of it, and
// copies and fills what they touch, for as long as they run.
#ifndef MC_EMU_RUNTIME_ARENA_H_
#define MC_EMU_RUNTIME_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace mc::emu {

// The source of the value of a byte of device memory.
enum class Origin : uint8_t {
  kNowhere = 0,  // Nobody wrote it.
  kKernel = 1,   // A launch, or a copy of what one wrote.
  kFill = 2,     // A fill with one value.
  kGiven = 3,    // Inputs and parameters.
  kHost = 4,     // A copy from host memory during a call.
};

struct Allocation {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  // Number of the last launch that wrote here: reads of memory that this launch did not write need
  // no race check.
  std::atomic<uint32_t> written_in{0};
  uint32_t first_chunk = 0;
  uint32_t num_chunks = 0;
  bool is_host_visible = false;  // Pinned or managed: never closed.
  bool is_pinned = false;        // Host memory that kernels would reach over the bus.
  bool is_mapped = false;        // An input of a call.
  uint32_t num_open = 0;         // Those who have it open now.  Guarded by the arena's mutex.
};

// The data of the arena for access checks; constant once it was reserved.
struct ArenaView {
  static constexpr size_t kChunkBytes = size_t{1} << 20;

  uintptr_t base = 0;
  size_t bytes = 0;
  const uint32_t* slot_of_chunk = nullptr;  // Slot 0 is empty for ever.
  Allocation* table = nullptr;
  uint64_t* shadow = nullptr;
  Origin* origins = nullptr;

  bool contains(uintptr_t address) const { return address - base < bytes; }

  // The allocation whose chunks hold the address.  REQUIRES: contains(address).
  Allocation* find(uintptr_t address) const {
    return &table[slot_of_chunk[(address - base) / kChunkBytes]];
  }
  uint64_t* shadow_of(uintptr_t address) const { return shadow + (address - base) / 4; }
  Origin* origin_of(uintptr_t address) const { return origins + (address - base); }
};

class Arena {
 public:
  static constexpr size_t kChunkBytes = ArenaView::kChunkBytes;
  static constexpr size_t kAlignment = 16;

  ArenaView view() const { return {base_, bytes_, slot_of_chunk_, table_, shadow_, origins_}; }

  // Reserves `bytes` of address space; false when the system refuses.
  bool reserve(size_t bytes);

  // The same, or a half of it, a quarter, and so on down to 1 GiB: where the system promises no
  // more memory than it has (vm.overcommit_memory = 2), much address space is refused.
  bool reserve_up_to(size_t bytes);

  // From now on memory is closed to host code.  REQUIRES: nothing was allocated.
  void close() { is_closed_ = true; }

  enum class Visibility { kDevice, kHostToo, kPinned };

  // Both return null when space or memory ran out.  Thread-safe.
  void* allocate(size_t size, Visibility visibility = Visibility::kDevice);
  void* map(int fd, uint64_t offset, size_t size);  // Its bytes are given.

  // Bytes mapped since this was last asked.
  size_t take_mapped_bytes() { return mapped_bytes_.exchange(0); }

  // Opens the allocation that holds the address, or all; close_* undoes one of these.  An address
  // outside the arena is ignored.  Thread-safe.
  void open_at(uintptr_t address) { change_at(address, 1); }
  void close_at(uintptr_t address) { change_at(address, -1); }
  void open_all() { change_all(1); }
  void close_all() { change_all(-1); }

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
  void change_at(uintptr_t address, int by);
  void change_all(int by);
  void change(Allocation* allocation, int by);

  // Constant after reserve().
  uintptr_t base_ = 0;
  size_t bytes_ = 0;
  uint32_t* slot_of_chunk_ = nullptr;  // Slot 0 is empty for ever.
  Allocation* table_ = nullptr;
  uint64_t* shadow_ = nullptr;
  Origin* origins_ = nullptr;
  bool is_closed_ = false;
  std::atomic<size_t> mapped_bytes_{0};

  // Guarded by mutex_.
  std::mutex mutex_;
  uint32_t chunks_used_ = 1;
  uint32_t slots_used_ = 1;
  std::deque<uint32_t> slots_free_;
  std::set<uint32_t> live_;                               // Slots in use.
  uint32_t num_open_all_ = 0;                             // Launches that run.
  std::map<uint32_t, std::deque<uint32_t>> chunks_free_;  // Keys are counts; oldest first.
};

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_ARENA_H_
