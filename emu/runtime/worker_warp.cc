// SPDX-License-Identifier: Apache-2.0
// Warp collectives.  Lanes deposit a value and wait; the last one to arrive computes every lane's
// result, so no lane can overwrite a deposit that another still has to read.
#include <algorithm>
#include <bit>
#include <cstdio>

#include "mc_emu/errors.h"
#include "runtime/worker.h"

namespace mc::emu {
namespace {

constexpr uint64_t kPoison = ~uint64_t{0};  // What a lane gets from one that is not there.

// The lane that a shuffle reads; -1 for the own value.
int shuffle_source(int kind, int lane, int argument, int width) {
  const int first = lane & ~(width - 1);
  const int last = first + width - 1;
  int source = lane;
  switch (kind) {
    case kMcEmuWarpIndex:
      return first | (argument & (width - 1));
    case kMcEmuWarpUp:
      source = static_cast<unsigned>(argument) > 31u ? -1 : lane - argument;
      return source < first ? -1 : source;
    case kMcEmuWarpDown:
      source = static_cast<unsigned>(argument) > 31u ? 32 : lane + argument;
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

template <class F>
void for_each_lane(uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

void shuffle(Thread* threads, uint32_t lanes) {
  uint64_t values[kWarpLanes];
  for_each_lane(lanes, [&](int lane) { values[lane] = threads[lane].value; });
  for_each_lane(lanes, [&](int lane) {
    Thread& thread = threads[lane];
    const int source = shuffle_source(thread.kind, lane, thread.argument, thread.width);
    if (source >= 0) thread.value = (lanes >> source & 1) != 0 ? values[source] : kPoison;
  });
}

void ballot(Thread* threads, uint32_t lanes) {
  uint32_t votes = 0;
  for_each_lane(lanes, [&](int lane) { votes |= uint32_t{threads[lane].value != 0} << lane; });
  for_each_lane(lanes, [&](int lane) { threads[lane].value = votes; });
}

void match(Thread* threads, uint32_t lanes, bool all) {
  uint32_t equal[kWarpLanes];
  for_each_lane(lanes, [&](int lane) {
    equal[lane] = 0;
    for_each_lane(lanes, [&](int other) {
      equal[lane] |= uint32_t{threads[other].value == threads[lane].value} << other;
    });
  });
  for_each_lane(lanes, [&](int lane) {
    threads[lane].value = all && equal[lane] != lanes ? 0 : equal[lane];
  });
}

void reduce_all(Thread* threads, uint32_t lanes, int kind) {
  const int first = std::countr_zero(lanes);
  uint32_t result = static_cast<uint32_t>(threads[first].value);
  for_each_lane(lanes & (lanes - 1), [&](int lane) {
    result = reduce(kind, result, static_cast<uint32_t>(threads[lane].value));
  });
  for_each_lane(lanes, [&](int lane) { threads[lane].value = result; });
}

void compute(Thread* threads, uint32_t lanes, int kind) {
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
  settle_suspect();
  Thread& self = block_.threads[current_];
  const int lane = current_ % kWarpLanes;
  if ((mask >> lane & 1) == 0) {
    fail("deadlock", cudaErrorLaunchFailure, pc,
         "a lane takes part in a warp operation whose mask does not name it");
  }
  self.kind = static_cast<uint16_t>(kind);
  self.mask = mask;
  self.value = value;
  self.argument = argument;
  self.width = width;
  self.line = line;
  self.pc = pc;
  Warp& warp = block_.warps[current_ / kWarpLanes];
  warp.waiting |= 1u << lane;
  if (!try_complete_warp(current_ / kWarpLanes, mask)) wait(ThreadState::kWarp, line, pc);
  return self.value;
}

// Completes the collective over `mask` when every live lane of it waits for that mask.
bool Worker::try_complete_warp(int index, uint32_t mask) {
  const Warp& warp = block_.warps[index];
  const uint32_t lanes = mask & warp.live;
  if ((lanes & ~warp.waiting) != 0 || lanes == 0) return false;
  const Thread* threads = &block_.threads[index * kWarpLanes];
  bool agree = true;
  for_each_lane(lanes, [&](int lane) { agree &= threads[lane].mask == mask; });
  if (agree) complete_warp(index, lanes);
  return agree;
}

void Worker::complete_warp(int index, uint32_t lanes) {
  Warp& warp = block_.warps[index];
  const int first = index * kWarpLanes;
  Thread* threads = &block_.threads[first];
  const int kind = threads[std::countr_zero(lanes)].kind;
  for_each_lane(lanes, [&](int lane) {
    if (threads[lane].kind != kind) {
      fail("divergent_barrier", cudaErrorLaunchFailure, threads[lane].pc,
           "lanes of one mask take part in different warp operations");
    }
  });
  compute(threads, lanes, kind);
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
uint32_t Worker::active_mask(int line, uintptr_t pc) {
  settle_suspect();
  wait(ThreadState::kActiveMask, line, pc);
  return static_cast<uint32_t>(block_.threads[current_].value);
}

bool Worker::release_active_masks() {
  bool released = false;
  for (int first = 0; first < num_threads_; first += kWarpLanes) {
    Thread* threads = &block_.threads[first];
    uint32_t lanes = 0;
    int line = 0;
    for_each_lane(block_.warps[first / kWarpLanes].live, [&](int lane) {
      if (threads[lane].state != ThreadState::kActiveMask) return;
      if (lanes == 0) line = threads[lane].line;
      if (threads[lane].line == line) lanes |= 1u << lane;
    });
    for_each_lane(lanes, [&](int lane) {
      threads[lane].value = lanes;
      threads[lane].state = ThreadState::kReady;
      block_.ready.push_back(static_cast<uint16_t>(first + lane));
    });
    released |= lanes != 0;
  }
  return released;
}

}  // namespace mc::emu
