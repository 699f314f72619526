// SPDX-License-Identifier: Apache-2.0
//
// Which conversations a step learns from, and in which passes of the decoder.
//
// Every epoch has its own order, which the seed determines.  A step takes conversations in that
// order until it has its tokens.  They are put whole into packs, first fit in order of falling
// length; attention does not cross from one conversation into the next, so a pack is only a matter
// of speed.
#ifndef MC_TRAIN_PACKING_H_
#define MC_TRAIN_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mc::train {

// The place of a run in its data.
struct Place {
  int64_t epoch = 0;
  int64_t next = 0;  // Conversations of this epoch that were taken.
  bool operator==(const Place&) const = default;
};

// The order of `count` conversations in an epoch.
std::vector<size_t> epoch_order(size_t count, uint64_t seed, int64_t epoch);

class Batches {
 public:
  // REQUIRES: lengths is not empty, tokens_min > 0.
  Batches(std::vector<int64_t> lengths, uint64_t seed, int64_t tokens_min, Place place);
  // Conversations until they have at least tokens_min tokens together; at most every one once.
  std::vector<size_t> next();
  const Place& place() const { return place_; }

 private:
  std::vector<int64_t> lengths_;
  uint64_t seed_;
  int64_t tokens_min_;
  Place place_;
  std::vector<size_t> order_;
};

// Numbers of `lengths`, dealt to `hands` groups of about the same sum: the longest first, each to
// the group with the smallest sum.  Groups may be empty.
std::vector<std::vector<size_t>> deal(std::span<const int64_t> lengths, size_t hands);

// Numbers of `lengths`, grouped so that the lengths of a group sum to at most `capacity`; one that
// is longer is a group of its own.
std::vector<std::vector<size_t>> first_fit(std::span<const int64_t> lengths, int64_t capacity);

}  // namespace mc::train

#endif  // MC_TRAIN_PACKING_H_
