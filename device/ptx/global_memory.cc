// SPDX-License-Identifier: Apache-2.0
#include "ptx/global_memory.h"

#include <sys/mman.h>

#include <utility>

#include "ptx/program.h"

namespace mc::ptx {
namespace {

constexpr size_t kAlign = 256;
// Between allocations, so that an access beyond the end of one is not in the next.
constexpr size_t kGap = 256;
constexpr size_t kShadowSlack = 1 << 16;

size_t rounded_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

Result<Reserved> Reserved::create(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return Error{ErrorCode::kExhausted, "cannot reserve " + std::to_string(bytes) + " bytes"};
  }
  return Reserved(static_cast<uint8_t*>(data), bytes);
}

Reserved::Reserved(Reserved&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Reserved::~Reserved() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void Reserved::clear() { madvise(data_, bytes_, MADV_DONTNEED); }

Result<std::unique_ptr<GlobalMemory>> GlobalMemory::create(size_t bytes) {
  MC_TRY(Reserved memory, Reserved::create(bytes + kGap), "device memory");
  return std::unique_ptr<GlobalMemory>(new GlobalMemory(std::move(memory), bytes));
}

Result<uint64_t> GlobalMemory::allocate(size_t bytes, std::string name) {
  const size_t place = rounded_up(bytes) + kGap;
  uint64_t begin = 0;
  if (const auto spare = spare_.find(place); spare != spare_.end()) {
    begin = spare->second;
    spare_.erase(spare);
  } else {
    if (bytes > size_ || place > size_ - used_) {
      return Error{ErrorCode::kExhausted, "device memory is full: " + std::to_string(bytes) +
                                              " bytes are wanted, " + std::to_string(used_) +
                                              " of " + std::to_string(size_) + " are used"};
    }
    begin = kGlobalBase + used_;
    used_ += place;
  }
  allocations_[begin] = {begin, begin + bytes, std::move(name)};
  return begin;
}

bool GlobalMemory::release(uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
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

uint8_t* GlobalMemory::host(uint64_t address, size_t bytes) const {
  if (bytes == 0) return origin();
  const Allocation* allocation = find(address);
  const bool fits = allocation != nullptr && bytes <= allocation->end - address;
  return fits ? origin() + address : nullptr;
}

uint8_t* GlobalMemory::origin() const {
  // Not an address of any object; what is added to it makes it one.
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t>(bytes_.data()) - kGlobalBase);
}

Result<std::unique_ptr<ShadowMemory>> ShadowMemory::create(size_t memory_bytes) {
  // Room for kernels whose narrowest access, and so their granule, is one byte.
  const size_t granules = memory_bytes + kShadowSlack, lines = (granules >> kLineShift) + 1;
  MC_TRY(Reserved rows, Reserved::create(3 * granules * sizeof(uint32_t)), "shadow memory");
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

GlobalShadow ShadowMemory::rows() const {
  uint32_t* words = reinterpret_cast<uint32_t*>(words_.data());
  return {reinterpret_cast<Line*>(lines_.data()), words, words + row_, words + 2 * row_};
}

uint32_t ShadowMemory::written_in(uint64_t line) const {
  const Touch& touch = rows().lines[line].written;
  return touch.since >= launch_since_ ? touch.mask : 0;
}

uint32_t ShadowMemory::read_in(uint64_t line) const {
  const Touch& touch = rows().lines[line].read;
  return touch.since >= launch_since_ ? touch.mask : 0;
}

}  // namespace mc::ptx
