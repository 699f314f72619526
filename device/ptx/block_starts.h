// SPDX-License-Identifier: Apache-2.0
//
// BlockStarts: which block had a context at which epoch, to name the other thread of a race.
// Thread-safe.
#ifndef MC_PTX_BLOCK_STARTS_H_
#define MC_PTX_BLOCK_STARTS_H_

#include <cstdint>
#include <mutex>
#include <vector>

namespace mc::ptx {

class BlockStarts {
 public:
  // REQUIRES: the epochs of a context grow.
  void add(uint32_t context, uint32_t epoch, uint64_t block);
  // The block, or -1.
  int64_t find(uint32_t context, uint32_t epoch) const;

 private:
  struct Start {
    uint32_t epoch;
    uint64_t block;
  };
  mutable std::mutex mutex_;
  std::vector<std::vector<Start>> rows_;  // The rows of contexts. Guarded by mutex_.
};

}  // namespace mc::ptx

#endif  // MC_PTX_BLOCK_STARTS_H_
