// SPDX-License-Identifier: Apache-2.0
// Warp collectives.  Lanes deposit a value and wait; the last one to arrive computes every lane's
// result, so no lane can overwrite a deposit that another still has to read.
//
// Warps of 128 lanes have CUDA's masks of 32 bits.  Bit i names lane i, as in a warp of 32, and the
// full mask names all 128 lanes; what a vote or a match returns has the bits of lanes 0 to 31.  No
// hardware was met: this is our reading of a mask that is too short.  The operations of a group
// (kMcEmuWarpGroup: cooperative groups and CUB) name and return lanes of the caller's aligned 32.
#include <algorithm>
#include <cstdio>

#include "mc_emu/errors.h"
#include "runtime/check.h"
#include "runtime/worker.h"

namespace mc::emu {
namespace {

constexpr uint64_t kPoison = ~uint64_t{0};  // The value that a lane gets from an absent one.

// The lanes that a mask names, of those that are `live`.
LaneSet named_lanes(int kind, uint32_t mask, int lane, LaneSet live) {
  if ((kind & kMcEmuWarpGroup) != 0) return LaneSet{mask} << (lane & ~(kLanesNamed - 1)) & live;
  return mask == ~0u ? live : mask & live;
}

// The lanes as the bits that `lane` gets.  Bit 32 is set where there are others.
uint64_t word_of(LaneSet lanes, int kind, int lane) {
  if ((kind & kMcEmuWarpGroup) != 0) {
    return static_cast<uint32_t>(lanes >> (lane & ~(kLanesNamed - 1)));
  }
  return static_cast<uint32_t>(lanes) | uint64_t{(lanes >> kLanesNamed) != 0} << kLanesNamed;
}

// The lane that a shuffle reads; -1 for the own value.
int shuffle_source(int kind, int lane, int argument, int width) {
  const int first = lane & ~(width - 1);
  const int last = first + width - 1;
  int source = lane;
  switch (kind & ~kMcEmuWarpGroup) {
    case kMcEmuWarpIndex:
      return first | (argument & (width - 1));
    case kMcEmuWarpUp:
      source = argument < 0 || argument >= warp_size() ? -1 : lane - argument;
      return source < first ? -1 : source;
    case kMcEmuWarpDown:
      source = argument < 0 || argument >= warp_size() ? kLanesMax : lane + argument;
      return source > last ? -1 : source;
    default:  // kMcEmuWarpXor
      source = lane ^ argument;
      return source > last || source < 0 ? -1 : source;
  }
}

uint32_t reduce(int kind, uint32_t a, uint32_t b) {
  const int32_t signed_a = static_cast<int32_t>(a);
  const int32_t signed_b = static_cast<int32_t>(b);
  switch (kind) {
    case kMcEmuWarpAddUnsigned:
      return a + b;
    case kMcEmuWarpMinUnsigned:
      return std::min(a, b);
    case kMcEmuWarpMaxUnsigned:
      return std::max(a, b);
    case kMcEmuWarpMinSigned:
      return static_cast<uint32_t>(std::min(signed_a, signed_b));
    case kMcEmuWarpMaxSigned:
      return static_cast<uint32_t>(std::max(signed_a, signed_b));
    case kMcEmuWarpAnd:
      return a & b;
    case kMcEmuWarpOr:
      return a | b;
    default:  // kMcEmuWarpExclusiveOr
      return a ^ b;
  }
}

void shuffle(Thread* threads, LaneSet lanes) {
  uint64_t values[kLanesMax];
  std::fill_n(values, warp_size(), kPoison);
  for_each_lane(lanes, [&](int lane) { values[lane] = threads[lane].value; });
  for_each_lane(lanes, [&](int lane) {
    Thread& thread = threads[lane];
    const int source = shuffle_source(thread.kind, lane, thread.argument, thread.width);
    if (source >= 0) thread.value = source < warp_size() ? values[source] : kPoison;
  });
}

void ballot(Thread* threads, LaneSet lanes) {
  LaneSet votes = 0;
  for_each_lane(lanes, [&](int lane) { votes |= LaneSet{threads[lane].value != 0} << lane; });
  for_each_lane(lanes,
                [&](int lane) { threads[lane].value = word_of(votes, threads[lane].kind, lane); });
}

void match(Thread* threads, LaneSet lanes, bool all) {
  LaneSet equal[kLanesMax];
  for_each_lane(lanes, [&](int lane) {
    equal[lane] = 0;
    for_each_lane(lanes, [&](int other) {
      equal[lane] |= LaneSet{threads[other].value == threads[lane].value} << other;
    });
  });
  for_each_lane(lanes, [&](int lane) {
    const LaneSet found = all && equal[lane] != lanes ? 0 : equal[lane];
    threads[lane].value = word_of(found, threads[lane].kind, lane);
  });
}

void reduce_all(Thread* threads, LaneSet lanes, int kind) {
  const int first = lowest_lane(lanes);
  uint32_t result = static_cast<uint32_t>(threads[first].value);
  for_each_lane(lanes & (lanes - 1), [&](int lane) {
    result = reduce(kind, result, static_cast<uint32_t>(threads[lane].value));
  });
  for_each_lane(lanes, [&](int lane) { threads[lane].value = result; });
}

void compute(Thread* threads, LaneSet lanes, int kind) {
  switch (kind) {
    case kMcEmuWarpSync:
      return;
    case kMcEmuWarpIndex:
    case kMcEmuWarpUp:
    case kMcEmuWarpDown:
    case kMcEmuWarpXor:
      return shuffle(threads, lanes);
    case kMcEmuWarpBallot:
      return ballot(threads, lanes);
    case kMcEmuWarpMatchAny:
      return match(threads, lanes, false);
    case kMcEmuWarpMatchAll:
      return match(threads, lanes, true);
    default:
      return reduce_all(threads, lanes, kind);
  }
}

}  // namespace

uint64_t Worker::warp_collective(int kind, uint32_t mask, uint64_t value, int argument, int width,
                                 int line, uintptr_t pc) {
  if (pending_write_.is_active) commit_pending_write();
  Thread& self = block_.threads[current_];
  const int lane = lane_of(current_);
  if (warp_size() == kLanesNamed) kind &= ~kMcEmuWarpGroup;  // The same, and may be mixed.
  Warp& warp = block_.warps[warp_of(current_)];
  if ((named_lanes(kind, mask, lane, warp.live) & only_lane(lane)) == 0) {
    fail("deadlock", cudaErrorLaunchFailure, pc,
         lane < kLanesNamed
             ? "a lane takes part in a warp operation whose mask does not name it"
             : "a lane takes part in a warp operation whose mask does not name it: "
               "of a warp of 128 threads, a mask that is not full names lanes 0 to 31");
  }
  self.kind = static_cast<uint16_t>(kind);
  self.mask = mask;
  self.value = value;
  self.argument = argument;
  self.width = width;
  self.line = line;
  self.pc = pc;
  warp.waiting |= only_lane(lane);
  if (!try_complete_warp(current_)) wait(ThreadState::kWarp, line, pc);
  return self.value;
}

// Completes the collective that the thread waits for when all its live lanes do.
bool Worker::try_complete_warp(int thread) {
  const int index = warp_of(thread);
  const Warp& warp = block_.warps[index];
  const Thread& self = block_.threads[thread];
  const LaneSet lanes = named_lanes(self.kind, self.mask, lane_of(thread), warp.live);
  if ((lanes & ~warp.waiting) != 0 || lanes == 0) return false;
  const Thread* threads = &block_.threads[index << warp_shift];
  bool agree = true;
  for_each_lane(lanes, [&](int lane) {
    const Thread& other = threads[lane];
    agree &= other.mask == self.mask && ((other.kind ^ self.kind) & kMcEmuWarpGroup) == 0;
  });
  if (agree) complete_warp(index, lanes);
  return agree;
}

void Worker::complete_warp(int index, LaneSet lanes) {
  Warp& warp = block_.warps[index];
  MC_EMU_CHECK(lanes != 0 && (lanes & ~warp.live) == 0 && (lanes & ~warp.waiting) == 0);
  const int first = index << warp_shift;
  Thread* threads = &block_.threads[first];
  const int kind = threads[lowest_lane(lanes)].kind;
  for_each_lane(lanes, [&](int lane) {
    if (threads[lane].kind != kind) {
      fail("divergent_barrier", cudaErrorLaunchFailure, threads[lane].pc,
           "lanes of one mask take part in different warp operations");
    }
  });
  compute(threads, lanes, kind & ~kMcEmuWarpGroup);
  warp.waiting &= ~lanes;
  if (lanes == warp.live) {
    block_.checker.warp(index).join_all();
  } else {
    block_.checker.warp(index).join(lanes);
  }
  block_.order.join_lanes(index, lanes);
  refresh();
  for_each_lane(lanes, [&](int lane) {
    if (threads[lane].state != ThreadState::kWarp) return;  // The one that is running.
    threads[lane].state = ThreadState::kReady;
    block_.ready.push_back(static_cast<uint16_t>(first + lane));
  });
}

// CUDA says little about which lanes are active together.  Here a lane that asks waits until
// nothing else in the block can run: then the lanes of its warp that ask at the same line are
// together.
uint32_t Worker::active_mask(int kind, int line, uintptr_t pc) {
  commit_pending_write();
  block_.threads[current_].kind = static_cast<uint16_t>(kind);
  wait(ThreadState::kActiveMask, line, pc);
  return static_cast<uint32_t>(block_.threads[current_].value);
}

bool Worker::release_active_masks() {
  bool released = false;
  for (int first = 0; first < num_threads_; first += warp_size()) {
    Thread* threads = &block_.threads[first];
    LaneSet lanes = 0;
    int line = 0;
    for_each_lane(block_.warps[warp_of(first)].live, [&](int lane) {
      if (threads[lane].state != ThreadState::kActiveMask) return;
      if (lanes == 0) line = threads[lane].line;
      if (threads[lane].line == line) lanes |= only_lane(lane);
    });
    for_each_lane(lanes, [&](int lane) {
      threads[lane].value = word_of(lanes, threads[lane].kind, lane);
      threads[lane].state = ThreadState::kReady;
      block_.ready.push_back(static_cast<uint16_t>(first + lane));
    });
    released |= lanes != 0;
  }
  return released;
}

}  // namespace mc::emu
