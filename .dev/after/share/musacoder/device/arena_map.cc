// SPDX-License-Identifier: Apache-2.0
#include "arena_map.h"

#include <algorithm>
#include <iterator>

#include "check.h"
#include "commands.h"

namespace mc::device {

void ArenaMap::open(uint64_t base, uint64_t bytes, uint64_t bytes_max, Order order) {
  MC_CHECK(blocks_.empty() && bytes <= UINT64_MAX - base);
  base_ = next_ = base;
  end_ = base + bytes;
  bytes_max_ = bytes_max;
  order_ = order;
}

std::optional<ArenaMap::Block> ArenaMap::allocate(uint64_t bytes) {
  if (bytes > bytes_max_) return std::nullopt;
  bytes = std::max<uint64_t>(1, (bytes + kGranularity - 1) / kGranularity) * kGranularity;
  if (used_ + bytes > bytes_max_) return std::nullopt;
  uint64_t start = free_from(order_ == Order::kOldest ? next_ : base_, bytes);
  if (start + bytes > end_) start = free_from(base_, bytes);
  if (start + bytes > end_) return std::nullopt;
  MC_CHECK(!block_of(start) && !block_of(start + bytes - 1));
  blocks_.emplace(start, bytes);
  used_ += bytes;
  next_ = start + bytes + kGranularity;
  return Block{start, bytes};
}

uint64_t ArenaMap::free_from(uint64_t start, uint64_t bytes) const {
  auto next = blocks_.lower_bound(start);
  if (next != blocks_.begin()) {
    const auto& [address, size] = *std::prev(next);
    start = std::max(start, address + size + kGranularity);
  }
  for (; next != blocks_.end() && next->first < start + bytes + kGranularity; ++next) {
    start = next->first + next->second + kGranularity;
  }
  return start;
}

std::optional<ArenaMap::Block> ArenaMap::release(uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return std::nullopt;
  const Block block{found->first, found->second};
  blocks_.erase(found);
  MC_CHECK(used_ >= block.bytes);
  used_ -= block.bytes;
  return block;
}

std::optional<ArenaMap::Block> ArenaMap::block_of(uint64_t address) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return std::nullopt;
  --next;
  if (address >= next->first + next->second) return std::nullopt;
  return Block{next->first, next->second};
}

}  // namespace mc::device
