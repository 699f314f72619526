// SPDX-License-Identifier: Apache-2.0
//
// Order: what threads of a launch know of one another through atomics, volatile accesses and
// fences of global memory. Barriers and meetings of a warp are in shadow.h.
//
// A write of such a word releases what the warp's last fence came after: accesses of the warp
// itself, and those of its block before the block's last barrier. A fence that any warp executed
// before a barrier serves the whole block from then on. A read of such a word acquires all releases
// before it, of whatever word, for the warp at once and for its block from the next barrier on. So
// errors are on the silent side: two threads that synchronise through different words count as
// ordered. Kernels with such accesses run on one worker. A missing fence is found.
#ifndef MC_PTX_ORDER_H_
#define MC_PTX_ORDER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "ptx/machine.h"

namespace mc::ptx {

class Order {
 public:
  void fence(Block& block, Warp& warp);
  void acquire(Block& block, Warp& warp);
  void release(Block& block, Warp& warp);
  // True if an access of a warp at a time was released before a number of releases was acquired.
  bool is_released(uint32_t block, uint32_t warp, uint32_t since, uint32_t acquired) const;

 private:
  struct Release {
    uint32_t number = 0;
    uint32_t covered = 0;  // Accesses of the block before this time.
    uint32_t warp = 0;
    uint32_t fenced = 0;  // Accesses of the warp until this time.
  };
  std::map<uint32_t, std::vector<Release>> releases_;  // The key is a block, modulo kBlocksNamed.
  uint32_t number_ = 0;
};

}  // namespace mc::ptx

#endif  // MC_PTX_ORDER_H_
