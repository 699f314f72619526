// SPDX-License-Identifier: Apache-2.0
//
// ArenaMap: which addresses of a range are allocated.  Not thread-safe.
//
// Each allocation has granules of its own with an unmapped one behind them, so that running past
// its end faults.  With Order::kOldest a use after release faults, too.  With Order::kFirst inputs
// get the addresses of earlier inputs again, so that a result that a candidate cached by address is
// wrong.
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

  // The address that an allocation gets: the first free address, or the free address that was used
  // least recently.
  enum class Order { kFirst, kOldest };

  // The map never has more than `bytes_max` bytes allocated at once.
  void open(uint64_t base, uint64_t bytes, uint64_t bytes_max, Order order);

  // Returns nullopt if there is no room.  An allocation of zero bytes takes one byte.
  std::optional<Block> allocate(uint64_t bytes);
  // Returns nullopt if no block begins at the address.
  std::optional<Block> release(uint64_t address);
  // The block that holds the address.
  std::optional<Block> block_of(uint64_t address) const;

  uint64_t bytes_used() const { return used_; }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  // The first address from `start` on with room for `bytes` bytes and the gaps around them.
  uint64_t free_from(uint64_t start, uint64_t bytes) const;

  std::map<uint64_t, uint64_t> blocks_;  // Bytes by address.
  uint64_t base_ = 0;
  Order order_ = Order::kFirst;
  uint64_t next_ = 0;  // The address behind the last allocation.
  uint64_t end_ = 0;
  uint64_t bytes_max_ = 0;
  uint64_t used_ = 0;
};

}  // namespace mc::device

#endif  // MC_DEVICE_ARENA_MAP_H_
