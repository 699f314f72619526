// SPDX-License-Identifier: Apache-2.0
#include "runtime/race.h"

#include <algorithm>

#include "runtime/order.h"

namespace mc::emu {

constinit int warp_shift = 5;

void WarpOrder::reset() {
  tick_ = 0;
  full_tick_ = 0;
  partial_ = false;
}

void WarpOrder::join(LaneSet lanes) {
  if (!partial_) {
    met_.assign(index(warp_size(), 0), 0);
    partial_ = true;
  }
  next_tick();
  uint16_t joined[kLanesMax] = {};
  for_each_lane(lanes, [&](int lane) {
    const uint16_t* met = &met_[index(lane, 0)];
    for (int other = 0; other < warp_size(); ++other) {
      joined[other] = std::max(joined[other], met[other]);
    }
  });
  for_each_lane(lanes, [&](int lane) { joined[lane] = tick_; });
  for_each_lane(lanes,
                [&](int lane) { std::copy(joined, joined + warp_size(), &met_[index(lane, 0)]); });
}

void SharedChecker::begin_block(size_t bytes, int num_threads, BlockOrder* order) {
  begin_time_ = end_time_ + 1;  // Taken by what is only marked as written; accesses come later.
  barrier_time_ = end_time_ = begin_time_ + 1;
  order_ = order;
  const size_t words = (bytes + 3) / 4;
  if (words > words_.size()) {
    words_.resize(words);
    split_in_.resize(words);
    bytes_.resize(words * 4);
  }
  reset_warps(num_threads);
}

void SharedChecker::reset_warps(int num_threads) {
  for (int i = 0; i <= warp_of(num_threads - 1); ++i) warps_[i].reset();
}

Conflict SharedChecker::access(size_t offset, size_t size, uint16_t flags, uint32_t pc) {
  const Step step = now_.with_flags(flags);
  Conflict conflict;
  while (size > 0) {
    const size_t word = offset / 4;
    const size_t lead = offset % 4;
    const size_t here = std::min(size, 4 - lead);
    if (here == 4 && split_in_[word] != begin_time_) {
      const Conflict found = check(words_[word], step, pc);
      if (conflict.kind == Conflict::kNone) conflict = found;
    } else {
      Cell* cells = split(word);
      for (size_t i = lead; i < lead + here; ++i) {
        const Conflict found = check(cells[i], step, pc);
        if (conflict.kind == Conflict::kNone) conflict = found;
      }
    }
    offset += here;
    size -= here;
  }
  return conflict;
}

Conflict SharedChecker::check(Cell& cell, const Step& step, uint32_t pc) {
  if ((step.flags() & kAtomic) != 0 && cell.write.time() < begin_time_) {
    cell.write = step;  // An atomic update reads first.
    return {Conflict::kUninitialised, {}, 0};
  }
  return (step.flags() & kWrite) != 0 ? check_write(cell, step, pc) : check_read(cell, step);
}

Conflict SharedChecker::check_read(Cell& cell, const Step& step) {
  Conflict conflict;
  if (cell.write.time() < begin_time_) {
    conflict = {Conflict::kUninitialised, {}, 0};
    cell.write = step.at_time(begin_time_);  // Said once for each word.
  } else if (is_racing(cell.write, step)) {
    conflict = {Conflict::kReadAfterWrite, cell.write, cell.write_pc};
  }
  if (cell.read.thread() == step.thread() || is_before(cell.read, step)) {
    cell.read = step;
  } else {
    cell.other_read = step;
  }
  return conflict;
}

Conflict SharedChecker::check_write(Cell& cell, const Step& step, uint32_t pc) {
  Conflict conflict;
  if (is_racing(cell.write, step)) {
    conflict = {Conflict::kWriteAfterWrite, cell.write, cell.write_pc};
  } else if (is_racing(cell.read, step)) {
    conflict = {Conflict::kWriteAfterRead, cell.read, 0};
  } else if (is_racing(cell.other_read, step)) {
    conflict = {Conflict::kWriteAfterRead, cell.other_read, 0};
  }
  cell.write = step;
  cell.write_pc = pc;
  return conflict;
}

SharedChecker::Cell* SharedChecker::split(size_t word) {
  Cell* cells = &bytes_[word * 4];
  if (split_in_[word] != begin_time_) {
    split_in_[word] = begin_time_;
    std::fill(cells, cells + 4, words_[word]);
  }
  return cells;
}

bool SharedChecker::is_before(const Step& before, const Step& now) const {
  if (before.time() < barrier_time_ || before.thread() == now.thread()) return true;
  const int warp = warp_of(now.thread());
  if (warp_of(before.thread()) != warp) return false;
  return warps_[warp].is_ordered(lane_of(now.thread()), lane_of(before.thread()), before.tick());
}

bool SharedChecker::is_racing(const Step& before, const Step& now) const {
  if (is_before(before, now) || (before.flags() & now.flags() & kAtomic) != 0) return false;
  return order_ == nullptr || !order_->is_ordered(now.thread(), order_->block(), before.thread(),
                                                  before.time() - begin_time_);
}

}  // namespace mc::emu
