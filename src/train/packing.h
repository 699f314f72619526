// SPDX-License-Identifier: Apache-2.0
//
// The conversations from which each step learns, and their packing into forward passes.
//
// Every epoch has its own order, determined by the seed.  A step takes conversations in that order
// until it has enough tokens, and puts them whole into packs, by first fit in order of decreasing
// length. Attention does not cross from one conversation to the next, so packing affects only the
// speed.
#ifndef MC_TRAIN_PACKING_H_
#define MC_TRAIN_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mc::train {

// The position of a run in its data.
struct DataPosition {
  int64_t epoch = 0;
  int64_t next = 0;  // The number of conversations already taken in this epoch.
  bool operator==(const DataPosition&) const = default;
};

// The order of `count` conversations in an epoch.
std::vector<size_t> epoch_order(size_t count, uint64_t seed, int64_t epoch);

class Batches {
 public:
  // REQUIRES: lengths is not empty, tokens_min > 0.
  Batches(std::vector<int64_t> lengths, uint64_t seed, int64_t tokens_min, DataPosition position);
  // The next conversations, until they have at least tokens_min tokens together; no conversation
  // twice.
  std::vector<size_t> next();
  const DataPosition& position() const { return position_; }

 private:
  std::vector<int64_t> lengths_;
  uint64_t seed_;
  int64_t tokens_min_;
  DataPosition position_;
  std::vector<size_t> order_;
};

// Distributes the indices of `lengths` over `num_groups` groups with about the same sum: the
// longest first, each to the group with the smallest sum so far.  Groups may be empty.
std::vector<std::vector<size_t>> balance_by_length(std::span<const int64_t> lengths,
                                                   size_t num_groups);

// Packs the indices of `lengths` into groups whose lengths sum to at most `capacity`.  A length
// above the capacity has a group of its own.
std::vector<std::vector<size_t>> first_fit(std::span<const int64_t> lengths, int64_t capacity);

}  // namespace mc::train

#endif  // MC_TRAIN_PACKING_H_
