// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/check.h"

namespace mc::emu {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kLeastBytes = size_t{1} << 30;  // For which it is worth to go on.
constexpr size_t kQuarantine = 64;  // Released runs of one size that stay inaccessible.
constexpr unsigned char kPoison = 0xFF;

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// Pages that the system gives only where they are used; unmapped again unless they are released.
class Mapping {
 public:
  Mapping(size_t bytes, int protection, int sharing = MAP_PRIVATE)
      : bytes_(bytes),
        pages_(mmap(nullptr, bytes, protection, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (is_valid()) munmap(pages_, bytes_);
  }
  bool is_valid() const { return pages_ != MAP_FAILED; }
  void* release() { return std::exchange(pages_, MAP_FAILED); }

 private:
  size_t bytes_;
  void* pages_;
};

}  // namespace

bool Arena::reserve(size_t bytes) {
  bytes = round_up(bytes, kChunkBytes);
  const size_t chunks = bytes / kChunkBytes;
  Mapping range(bytes + kChunkBytes, PROT_NONE);
  Mapping slots(round_up(chunks * sizeof(uint32_t), kPage), PROT_READ | PROT_WRITE);
  Mapping table(round_up(kSlots * sizeof(Allocation), kPage), PROT_READ | PROT_WRITE);
  // Shared, since a limit on data (RLIMIT_DATA) counts all of a private mapping, used or not.
  Mapping shadow(bytes * 2, PROT_READ | PROT_WRITE, MAP_SHARED);
  Mapping origins(bytes, PROT_READ | PROT_WRITE, MAP_SHARED);
  if (!range.is_valid() || !slots.is_valid() || !table.is_valid() || !shadow.is_valid() ||
      !origins.is_valid()) {
    return false;
  }
  base_ = round_up(reinterpret_cast<uintptr_t>(range.release()), kChunkBytes);
  bytes_ = bytes;
  slot_of_chunk_ = static_cast<uint32_t*>(slots.release());
  table_ = static_cast<Allocation*>(table.release());
  shadow_ = static_cast<uint64_t*>(shadow.release());
  origins_ = static_cast<Origin*>(origins.release());
  return true;
}

bool Arena::reserve_up_to(size_t bytes) {
  for (; bytes >= kLeastBytes; bytes /= 2) {
    if (reserve(bytes)) return true;
  }
  return false;
}

void* Arena::allocate(size_t size, Visibility visibility) {
  if (size == 0 || size > bytes_) return nullptr;
  const size_t span = round_up(size, kPage);
  const std::lock_guard lock(mutex_);
  const uint32_t count = static_cast<uint32_t>(span / kChunkBytes + 2);
  uint32_t first = 0;
  const uint32_t slot = claim_slot();
  if (slot == 0 || !claim_chunks(count, &first)) return nullptr;
  // The last chunk stays unmapped, so the pages end where it starts.
  const uintptr_t end = base_ + (size_t{first} + count - 1) * kChunkBytes;
  char* pages = reinterpret_cast<char*>(end - span);
  if (mprotect(pages, span, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::memset(pages, kPoison, span);
  const uintptr_t begin = end - round_up(size, kAlignment);
  publish(slot, begin, size, first, count);
  table_[slot].is_host_visible = visibility != Visibility::kDevice;
  table_[slot].is_pinned = visibility == Visibility::kPinned;
  change(&table_[slot], static_cast<int>(num_open_all_));
  return reinterpret_cast<void*>(begin);
}

void* Arena::map(int fd, uint64_t offset, size_t size) {
  if (size == 0 || size > bytes_) {
    errno = EINVAL;
    return nullptr;
  }
  const size_t lead = offset % kPage;
  const size_t span = round_up(lead + size, kPage);
  const std::lock_guard lock(mutex_);
  const uint32_t count = static_cast<uint32_t>(span / kChunkBytes + 2);
  uint32_t first = 0;
  const uint32_t slot = claim_slot();
  if (slot == 0 || !claim_chunks(count, &first)) {
    errno = ENOMEM;
    return nullptr;
  }
  const uintptr_t end = base_ + (size_t{first} + count - 1) * kChunkBytes;
  char* pages = reinterpret_cast<char*>(end - span);
  if (mmap(pages, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
           static_cast<off_t>(offset - lead)) == MAP_FAILED) {
    return nullptr;
  }
  const uintptr_t begin = end - span + lead;
  publish(slot, begin, size, first, count);
  std::memset(view().origin_of(begin), static_cast<int>(Origin::kGiven), size);
  table_[slot].is_mapped = true;
  mapped_bytes_ += size;
  change(&table_[slot], static_cast<int>(num_open_all_));
  return reinterpret_cast<void*>(begin);
}

void Arena::release(void* pointer) {
  if (pointer == nullptr) return;
  const std::lock_guard lock(mutex_);
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (!contains(address)) return;
  const uint32_t slot = slot_of_chunk_[(address - base_) / kChunkBytes];
  Allocation& allocation = table_[slot];
  if (slot == 0 || allocation.begin != address) return;
  make_inaccessible(allocation);
  MC_EMU_CHECK(live_.erase(slot) == 1);
  for (uint32_t i = 0; i < allocation.num_chunks; ++i) {
    slot_of_chunk_[allocation.first_chunk + i] = 0;
  }
  chunks_free_[allocation.num_chunks].push_back(allocation.first_chunk);
  allocation.begin = allocation.end = 0;
  slots_free_.push_back(slot);
}

void Arena::clear_shadow() { madvise(shadow_, bytes_ * 2, MADV_REMOVE); }

uint32_t Arena::claim_slot() {
  if (slots_used_ < kSlots) return slots_used_++;
  if (slots_free_.empty()) return 0;
  const uint32_t slot = slots_free_.front();
  slots_free_.pop_front();
  return slot;
}

bool Arena::claim_chunks(size_t count, uint32_t* first) {
  const auto found = chunks_free_.find(static_cast<uint32_t>(count));
  if (found != chunks_free_.end() && found->second.size() > kQuarantine) {
    *first = found->second.front();
    found->second.pop_front();
    return true;
  }
  if (chunks_used_ + count > bytes_ / kChunkBytes) return false;
  *first = chunks_used_;
  chunks_used_ += static_cast<uint32_t>(count);
  return true;
}

void Arena::publish(uint32_t slot, uintptr_t begin, size_t size, uint32_t first, uint32_t count) {
  Allocation& allocation = table_[slot];
  MC_EMU_CHECK(allocation.begin == 0 && allocation.end == 0);
  MC_EMU_CHECK(first + count <= bytes_ / kChunkBytes);
  MC_EMU_CHECK(begin >= base_ + size_t{first} * kChunkBytes);
  allocation.begin = begin;
  allocation.end = begin + size;
  allocation.written_in = 0;
  allocation.first_chunk = first;
  allocation.num_chunks = count;
  allocation.is_host_visible = false;
  allocation.is_pinned = false;
  allocation.is_mapped = false;
  allocation.num_open = 0;
  live_.insert(slot);
  for (uint32_t i = 0; i < count; ++i) {
    MC_EMU_CHECK(slot_of_chunk_[first + i] == 0);
    slot_of_chunk_[first + i] = slot;
  }
}

void Arena::make_inaccessible(const Allocation& allocation) {
  const uintptr_t page = allocation.begin / kPage * kPage;
  const size_t span = round_up(allocation.end, kPage) - page;
  mmap(reinterpret_cast<void*>(page), span, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (allocation.written_in != 0) madvise(view().shadow_of(page), span * 2, MADV_REMOVE);
  madvise(view().origin_of(page), span, MADV_REMOVE);
}

void Arena::change_at(uintptr_t address, int by) {
  if (!is_closed_ || !contains(address)) return;
  const std::lock_guard lock(mutex_);
  const uint32_t slot = slot_of_chunk_[(address - base_) / kChunkBytes];
  if (slot != 0) change(&table_[slot], by);
}

void Arena::change_all(int by) {
  if (!is_closed_) return;
  const std::lock_guard lock(mutex_);
  MC_EMU_CHECK(by > 0 || num_open_all_ >= static_cast<uint32_t>(-by));
  num_open_all_ += static_cast<uint32_t>(by);
  for (const uint32_t slot : live_) change(&table_[slot], by);
}

// REQUIRES: mutex_ is held.
void Arena::change(Allocation* allocation, int by) {
  if (!is_closed_ || allocation->is_host_visible) return;
  MC_EMU_CHECK(by > 0 || allocation->num_open >= static_cast<uint32_t>(-by));
  allocation->num_open += static_cast<uint32_t>(by);
  const uintptr_t page = allocation->begin / kPage * kPage;
  const int protection = allocation->num_open == 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
  mprotect(reinterpret_cast<void*>(page), round_up(allocation->end, kPage) - page, protection);
}

}  // namespace mc::emu
