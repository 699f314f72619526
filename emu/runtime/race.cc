// SPDX-License-Identifier: Apache-2.0
#include "runtime/race.h"

#include <algorithm>
#include <cstring>

namespace mc::emu {

void WarpOrder::reset() {
  tick_ = 0;
  full_tick_ = 0;
  partial_ = false;
}

void WarpOrder::join(uint32_t mask) {
  if (!partial_) {
    std::memset(met_, 0, sizeof met_);
    partial_ = true;
  }
  ++tick_;
  uint32_t joined[kWarpLanes] = {};
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    for (int other = 0; other < kWarpLanes; ++other) {
      joined[other] = std::max(joined[other], met_[lane][other]);
    }
  }
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    if ((mask >> lane & 1) != 0) joined[lane] = tick_;
  }
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    if ((mask >> lane & 1) != 0) std::memcpy(met_[lane], joined, sizeof joined);
  }
}

void SharedChecker::begin_block(size_t bytes, int num_threads) {
  first_interval_ = ++interval_;  // Taken by what is only marked as written; accesses come later.
  ++interval_;
  const size_t words = (bytes + 3) / 4;
  if (words > words_.size()) {
    words_.resize(words);
    split_in_.resize(words);
    bytes_.resize(words * 4);
  }
  for (int i = 0; i * kWarpLanes < num_threads; ++i) warps_[i].reset();
}

Conflict SharedChecker::access_any(size_t offset, size_t size, const Step& step) {
  Conflict conflict;
  while (size > 0) {
    const size_t word = offset / 4;
    const size_t lead = offset % 4;
    const size_t here = std::min(size, 4 - lead);
    if (here == 4 && split_in_[word] != first_interval_) {
      const Conflict found = check(words_[word], step);
      if (conflict.kind == Conflict::kNone) conflict = found;
    } else {
      Cell* cells = split(word);
      for (size_t i = lead; i < lead + here; ++i) {
        const Conflict found = check(cells[i], step);
        if (conflict.kind == Conflict::kNone) conflict = found;
      }
    }
    offset += here;
    size -= here;
  }
  return conflict;
}

Conflict SharedChecker::check(Cell& cell, const Step& step) {
  if ((step.flags & kAtomic) != 0 && cell.write.interval < first_interval_) {
    cell.write = step;  // An atomic update reads first.
    return {Conflict::kUninitialised, {}};
  }
  return (step.flags & kWrite) != 0 ? check_write(cell, step) : check_read(cell, step);
}

SharedChecker::Cell* SharedChecker::split(size_t word) {
  Cell* cells = &bytes_[word * 4];
  if (split_in_[word] != first_interval_) {
    split_in_[word] = first_interval_;
    std::fill(cells, cells + 4, words_[word]);
  }
  return cells;
}

}  // namespace mc::emu
