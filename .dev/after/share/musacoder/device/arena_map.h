// SPDX-License-Identifier: Apache-2.0
//
// ArenaMap: which addresses of a range are allocated.  Not thread-safe.
//
// Each allocation has granules of its own with an unmapped one behind them, so that running past
// its end faults.  By Order::kOldest late uses fault, too; by Order::kFirst inputs come again at
// the addresses of earlier ones, so that a result that was kept for an address is wrong.
#ifndef MC_DEVICE_ARENA_MAP_H_
#define MC_DEVICE_ARENA_MAP_H_

#include <cstdint>
#include <map>
#include <optional>

namespace mc::device {

class ArenaMap {
 public:
  struct Block {
    uint64_t address;
    uint64_t bytes;  // A multiple of kGranularity.
  };

  // The address that an allocation gets: the first one that is free, or one that was not used for
  // the longest time.
  enum class Order { kFirst, kOldest };

  // At most `bytes_max` bytes are allocated at once.
  void open(uint64_t base, uint64_t bytes, uint64_t bytes_max, Order order);

  // None where it does not fit.  Zero bytes count as one.
  std::optional<Block> allocate(uint64_t bytes);
  // None where no block begins at the address.
  std::optional<Block> release(uint64_t address);
  // The block that holds the address.
  std::optional<Block> block_of(uint64_t address) const;

  uint64_t bytes_used() const { return used_; }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  // The first address from `start` on with room for so many bytes and the gaps around them.
  uint64_t free_from(uint64_t start, uint64_t bytes) const;

  std::map<uint64_t, uint64_t> blocks_;  // Bytes by address.
  uint64_t base_ = 0;
  Order order_ = Order::kFirst;
  uint64_t next_ = 0;  // The place behind the last allocation.
  uint64_t end_ = 0;
  uint64_t bytes_max_ = 0;
  uint64_t used_ = 0;
};

}  // namespace mc::device

#endif  // MC_DEVICE_ARENA_MAP_H_
