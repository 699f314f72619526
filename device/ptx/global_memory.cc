// SPDX-License-Identifier: Apache-2.0
#include "ptx/global_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "ptx/origin.h"
#include "ptx/program.h"

namespace mc::ptx {
namespace {

constexpr size_t kAlign = 256;
// The gap between allocations, so that an access beyond an allocation's end is not in the next.
constexpr size_t kGap = 256;
constexpr size_t kRangeAlign = 2 << 20;
constexpr size_t kPage = 4096;
constexpr size_t kShadowSlack = 1 << 16;

size_t rounded_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

Result<Reserved> Reserved::create(size_t bytes, int descriptor) {
  const bool is_shared = descriptor >= 0;
  const int kind = is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorCode::kExhausted, "cannot reserve " + std::to_string(bytes) + " bytes"};
  }
  return Reserved(static_cast<uint8_t*>(data), bytes, is_shared);
}

Reserved::Reserved(Reserved&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      is_shared_(other.is_shared_) {}

Reserved::~Reserved() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

// Pages of a file are kept by the file, unless they are removed from it.
void Reserved::drop(size_t begin, size_t end) {
  MC_CHECK(begin <= end && end <= bytes_);
  madvise(data_ + begin, end - begin, is_shared_ ? MADV_REMOVE : MADV_DONTNEED);
}

void Reserved::clear() { drop(0, bytes_); }

void Reserved::clear(size_t begin, size_t end) {
  begin = (begin + kPage - 1) / kPage * kPage;
  end = std::min(end, bytes_) / kPage * kPage;
  if (begin < end) drop(begin, end);
}

Result<std::unique_ptr<GlobalMemory>> GlobalMemory::create(size_t bytes, int descriptor) {
  MC_TRY(Reserved memory, Reserved::create(bytes + kGap, descriptor), "device memory");
  return std::unique_ptr<GlobalMemory>(new GlobalMemory(std::move(memory), bytes));
}

Result<uint64_t> GlobalMemory::allocate(size_t bytes, std::string name) {
  // Sizes near the end of their type would wrap around.
  const size_t size = bytes > size_ ? SIZE_MAX : rounded_up(bytes) + kGap;
  uint64_t begin = 0;
  if (const auto spare = spare_.find(size); spare != spare_.end()) {
    begin = spare->second;
    spare_.erase(spare);
  } else {
    if (size > size_ - used_) {
      return Error{ErrorCode::kExhausted, "device memory is full: " + std::to_string(bytes) +
                                              " bytes are wanted, " + std::to_string(used_) +
                                              " of " + std::to_string(size_) + " are used"};
    }
    begin = kGlobalBase + used_;
    used_ += size;
  }
  MC_CHECK(begin % kAlign == 0 && used_ <= size_);
  const auto [entry, is_new] =
      allocations_.emplace(begin, Allocation{begin, begin + bytes, std::move(name)});
  MC_CHECK(is_new);
  return begin;
}

Result<uint64_t> GlobalMemory::reserve(size_t bytes, uint64_t wanted) {
  const uint64_t first = std::max(wanted, kGlobalBase + used_) - kGlobalBase;
  const uint64_t offset = (first + kRangeAlign - 1) / kRangeAlign * kRangeAlign;
  const uint64_t begin = kGlobalBase + offset;
  if (offset > size_ || bytes > size_ - offset) {
    return Error{ErrorCode::kExhausted,
                 "no room for a range of " + std::to_string(bytes) + " addresses"};
  }
  reserved_[begin] = begin + bytes;
  used_ = offset + rounded_up(bytes);
  return begin;
}

bool GlobalMemory::is_reserved(uint64_t address, size_t bytes) const {
  const auto next = reserved_.upper_bound(address);
  if (next == reserved_.begin()) return false;
  const uint64_t end = std::prev(next)->second;
  return address < end && bytes <= end - address;
}

Status GlobalMemory::allocate_at(uint64_t address, size_t bytes, std::string name) {
  if (bytes == 0 || !is_reserved(address, bytes)) {
    return Error{ErrorCode::kInvalidInput, "an allocation is not within a reserved range"};
  }
  const Allocation* before = find_before(address + bytes - 1);
  if (before != nullptr && before->end > address) {
    return Error{ErrorCode::kInvalidInput, "an allocation overlaps another one"};
  }
  const auto [entry, is_new] =
      allocations_.emplace(address, Allocation{address, address + bytes, std::move(name)});
  MC_CHECK(is_new);
  return ok();
}

bool GlobalMemory::release(uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  MC_CHECK(found->second.begin == address);
  if (is_reserved(address, 1)) {
    bytes_.clear(address - kGlobalBase, found->second.end - kGlobalBase);
    allocations_.erase(found);
    return true;
  }
  spare_.emplace(rounded_up(found->second.end - found->second.begin) + kGap, address);
  allocations_.erase(found);
  return true;
}

const Allocation* GlobalMemory::find_before(uint64_t address) const {
  const auto next = allocations_.upper_bound(address);
  return next == allocations_.begin() ? nullptr : &std::prev(next)->second;
}

const Allocation* GlobalMemory::find(uint64_t address) const {
  const Allocation* before = find_before(address);
  return before != nullptr && address < before->end ? before : nullptr;
}

// Workers that write here concurrently store the same value.
void GlobalMemory::note_access(const Allocation& allocation, bool is_write) {
  const std::atomic_ref<uint8_t> origins(allocation.origins);
  const uint8_t known = origins.load(std::memory_order_relaxed);
  if (is_write) {
    std::atomic_ref<bool>(allocation.is_written).store(true, std::memory_order_relaxed);
    origins.store((known & ~kByHost) | kByKernel, std::memory_order_relaxed);
  } else if ((known & kGiven) != 0) {
    reads_given_.store(true, std::memory_order_relaxed);
  }
}

uint8_t* GlobalMemory::host(uint64_t address, size_t bytes) const {
  if (bytes == 0) return origin();
  const Allocation* allocation = find(address);
  const bool fits = allocation != nullptr && bytes <= allocation->end - address;
  return fits ? origin() + address : nullptr;
}

uint8_t* GlobalMemory::origin() const {
  // The result is not itself a valid address; adding a device address makes it one.
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t>(bytes_.data()) - kGlobalBase);
}

Result<std::unique_ptr<ShadowMemory>> ShadowMemory::create(size_t memory_bytes) {
  // Room for kernels whose narrowest access, and so their granule, is one byte.
  const size_t granules = memory_bytes + kShadowSlack, lines = (granules >> kLineShift) + 1;
  MC_TRY(Reserved rows, Reserved::create(4 * granules * sizeof(uint32_t)), "shadow memory");
  MC_TRY(Reserved all, Reserved::create(lines * sizeof(Line)), "shadow memory");
  auto memory = std::unique_ptr<ShadowMemory>(new ShadowMemory(std::move(all), std::move(rows)));
  memory->row_ = granules;
  return memory;
}

void ShadowMemory::begin_launch() {
  if (now_ > kTimesFull) {
    lines_.clear();
    now_ = 0;
  }
  launch_since_ = ++now_;
}

// There is a shadow for each granule size. Between launches no shadow is needed.
void ShadowMemory::forget(size_t begin, size_t end) {
  MC_CHECK(begin <= end);
  for (int shift = 0; shift <= 2; ++shift) {
    const size_t first = begin >> shift, last = end >> shift;
    lines_.clear((first >> kLineShift) * sizeof(Line), (last >> kLineShift) * sizeof(Line));
    for (size_t row = 0; row < 4 * row_; row += row_) {
      words_.clear((row + first) * sizeof(uint32_t), (row + last) * sizeof(uint32_t));
    }
  }
}

uint32_t ShadowMemory::updated_in(uint64_t line) const {
  const Touch& touch = line_at(line).written;
  const uint32_t written = touched(touch);
  if (touch.who != kByWords) return (touch.who & kStrongWrite) != 0 ? written : 0;
  const uint32_t* writers = rows().writer + (line << kLineShift);
  uint32_t updated = 0;
  for (int bit = 0; bit < 32; ++bit) {
    if ((writers[bit] & kStrongWrite) != 0) updated |= written & 1U << bit;
  }
  return updated;
}

GlobalShadow ShadowMemory::rows() const {
  uint32_t* words = reinterpret_cast<uint32_t*>(words_.data());
  return {reinterpret_cast<Line*>(lines_.data()), words, words + row_, words + 2 * row_,
          words + 3 * row_};
}

}  // namespace mc::ptx
