// SPDX-License-Identifier: Apache-2.0
//
// Lanes of a warp together: shuffles, votes, matches, sums, and barriers.
//
// A step with a mask of members waits until all of them that live have come, be it in several
// leaves. The last leaf to come does the work for all.
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

const Step* warp_barrier(Warp& base, const Step* s);

// Lanes may meet in different __syncwarp()s, but in one shuffle.
bool meets(const LaneWarp& w, const Leaf& leaf, const Step* s) {
  if (leaf.state != Leaf::State::kAtMeeting) return false;
  if (s->run == warp_barrier) return leaf.at->run == warp_barrier;
  return leaf.at == s && leaf.frame == w.frame;
}

Mask members(LaneWarp& w, uint32_t place) {
  const uint32_t* words = w.at<uint32_t>(place);
  if constexpr (kLanes == 32) return words[lowest(w.active)];
  // A mask of 32 bits means the lanes of each group of 32.
  Mask mask = 0;
  for (int k = 0; k < kLanes / 32; ++k) mask |= Mask{words[lowest(w.active)]} << (32 * k);
  return mask;
}

// False: the present lanes wait for others.
bool all_are_here(LaneWarp& w, const Step* s, Mask mask) {
  const Mask missing = mask & w.live & ~w.active;
  if (missing == 0) return true;
  Mask here = w.active;
  for (const Leaf& leaf : w.leaves) {
    if (meets(w, leaf, s)) here |= leaf.lanes;
  }
  if ((mask & w.live & ~here) == 0) return true;
  wait(w, Leaf::State::kAtMeeting, s);
  return false;
}

void check_membership(LaneWarp& w, const Step* s, Mask mask) {
  const Mask outside = w.active & ~mask;
  if (outside == 0) return;
  report(*w.block, w, s, FindingKind::kShuffleSource, w.thread(lowest(outside)),
         "the thread is not in the mask of its own instruction");
}

// True if each group of lanes of a leaf names itself: parts of a warp that meet apart. The step
// then runs for each group.
[[gnu::noinline]] bool by_groups(LaneWarp& w, const Step* s, const uint32_t* masks) {
  const Mask all = w.active;
  for (int l = 0; l < kLanes; ++l) {
    // A mask of 32 bits means lanes of the lane's own group of 32.
    const Mask mask = Mask{masks[l]} << (l & ~31);
    if (has(all, l) && (!has(mask, l) || (mask & w.live & ~all) != 0)) return false;
  }
  for (Mask left = all; left != 0;) {
    const int first = lowest(left);
    w.set(Mask{masks[first]} << (first & ~31) & all);
    left &= ~w.active;
    s->run(w, s);
  }
  w.set(all);
  return true;
}

// Calls f with all lanes that meet here as the active ones. place: that of their masks.
template <class F>
MC_INLINE const Step* together(LaneWarp& w, const Step* s, uint32_t place, F f) {
  const Mask mask = members(w, place);
  if ((w.active & ~mask) != 0 && by_groups(w, s, w.at<uint32_t>(place))) return s + 1;
  if (!all_are_here(w, s, mask)) return nullptr;
  const Mask mine = w.active;
  if (mask != kAllLanes) check_membership(w, s, mask);
  Mask here = mine;
  if ((mask & w.live & ~mine) != 0) {
    for (Leaf& leaf : w.leaves) {
      if (!meets(w, leaf, s)) continue;
      here |= leaf.lanes;
      leaf.state = Leaf::State::kRuns;
      ++leaf.at;
    }
  }
  if (here != mine) w.set(here);
  f();
  if (here != mine) w.set(mine);
  return s + 1;
}

const Step* warp_barrier(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return together(w, s, s->a, [&] {
    w.stamp = ++*w.block->now;
    if (w.active == w.live) {
      w.since = w.stamp;
    } else {
      meet(*w.block, w, lane_set(w.active));
    }
  });
}

enum class Shuffle : uint32_t { kUp, kDown, kButterfly, kIndex };

// The lane that lane l reads, and whether it is in range. Segments are within groups of 32.
MC_INLINE int source_lane(Shuffle mode, int l, uint32_t b, uint32_t c, bool& in_range) {
  const int group = l & ~31, own = l & 31;
  const int distance = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31);
  const int segment = static_cast<int>(c >> 8 & 31);
  const int low = own & segment, high = low | (clamp & ~segment);
  int source = own;
  switch (mode) {
    case Shuffle::kUp:
      source = own - distance;
      in_range = source >= high;
      break;
    case Shuffle::kDown:
      source = own + distance;
      in_range = source <= high;
      break;
    case Shuffle::kButterfly:
      source = own ^ distance;
      in_range = source <= high;
      break;
    case Shuffle::kIndex:
      source = low | (distance & ~segment);
      in_range = source <= high;
      break;
  }
  return group + (in_range ? source : own);
}

const Step* shuffle(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return together(w, s, s->e, [&] {
    const uint32_t *a = w.at<uint32_t>(s->a), *b = w.at<uint32_t>(s->b), *c = w.at<uint32_t>(s->c);
    alignas(32) uint32_t values[kLanes];
    Mask in_ranges = 0;
    for (int l = 0; l < kLanes; ++l) {
      bool in_range = false;
      const int source = source_lane(static_cast<Shuffle>(s->flags), l, b[l], c[l], in_range);
      in_ranges |= Mask{in_range} << l;
      // The value of an absent lane is undefined. Kernels may read it and not use it; those that
      // use it compute with a NaN.
      values[l] = has(w.active, source) ? a[source] : 0xFFFFFFFF;
    }
    each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return values[l]; });
    if (s->immediate != 0) set_predicate(w, static_cast<uint32_t>(s->immediate), in_ranges);
  });
}

enum class Vote : int64_t { kBallot, kAll, kAny, kUniform };

uint32_t group_bits(Mask mask, int lane) { return static_cast<uint32_t>(mask >> (lane & ~31)); }

const Step* vote(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return together(w, s, s->e, [&] {
    const Mask set = predicate(w, s, s->a, kNegated) & w.active;
    const Vote kind = static_cast<Vote>(s->immediate);
    if (kind == Vote::kBallot) {
      each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return group_bits(set, l); });
      return;
    }
    Mask result = 0;
    for (int l = 0; l < kLanes; l += 32) {
      const uint32_t yes = group_bits(set, l), there = group_bits(w.active, l);
      const bool holds = kind == Vote::kAll   ? yes == there
                         : kind == Vote::kAny ? yes != 0
                                              : yes == 0 || yes == there;
      if (holds) result |= Mask{0xFFFFFFFF} << l;
    }
    set_predicate(w, s->d, result);
  });
}

template <class T>
void match_lanes(LaneWarp& w, const Step* s) {
  const T* a = w.at<T>(s->a);
  const bool wants_all = s->flags != 0;
  alignas(32) uint32_t values[kLanes];
  Mask equal = 0;
  for (int l = 0; l < kLanes; ++l) {
    const int group = l & ~31;
    uint32_t same = 0;
    for (int k = 0; k < 32; ++k) {
      if (has(w.active, group + k) && a[group + k] == a[l]) same |= 1U << k;
    }
    const bool all = same == group_bits(w.active, l);
    values[l] = wants_all && !all ? 0 : same;
    if (all) equal |= bit(l);
  }
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return values[l]; });
  if (s->c != 0) set_predicate(w, s->c, equal);
}

const Step* match(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return together(w, s, s->e, [&] {
    s->immediate == 8 ? match_lanes<uint64_t>(w, s) : match_lanes<uint32_t>(w, s);
  });
}

// The immediate of redux is 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor; the flag says signed.
uint32_t reduced(int64_t kind, bool is_signed, uint32_t x, uint32_t y) {
  const bool less = is_signed ? static_cast<int32_t>(x) < static_cast<int32_t>(y) : x < y;
  switch (kind) {
    case 0:
      return x + y;
    case 1:
      return less ? x : y;
    case 2:
      return less ? y : x;
    case 3:
      return x & y;
    case 4:
      return x | y;
    default:
      return x ^ y;
  }
}

const Step* redux(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return together(w, s, s->e, [&] {
    const uint32_t* a = w.at<uint32_t>(s->a);
    uint32_t results[kLanes / 32] = {};
    bool is_first[kLanes / 32];
    for (bool& first : is_first) first = true;
    for (int l = 0; l < kLanes; ++l) {
      if (!has(w.active, l)) continue;
      uint32_t& result = results[l / 32];
      result = is_first[l / 32] ? a[l] : reduced(s->immediate, s->flags != 0, result, a[l]);
      is_first[l / 32] = false;
    }
    each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return results[l / 32]; });
  });
}

const Step* active_mask(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Mask active = w.active;
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return group_bits(active, l); });
  return s + 1;
}

// The lowest lane of the members is elected.
const Step* elect(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return together(w, s, s->e, [&] {
    const int leader = lowest(w.active);
    if (s->d != 0) {
      each_lane(w, w.at<uint32_t>(s->d), [&](int) { return static_cast<uint32_t>(leader); });
    }
    set_predicate(w, s->c, bit(leader));
  });
}

// The scheduler lets the leaves go on from the step of their barrier: schedule.cc.
const Step* barrier(Warp& base, const Step* s) {
  wait(lanes_of(base), Leaf::State::kAtBarrier, s);
  return nullptr;
}

}  // namespace

void add_meetings(PlainHandlers& handlers) {
  handlers.warp_barrier = warp_barrier;
  handlers.shuffle = shuffle;
  handlers.vote = vote;
  handlers.match = match;
  handlers.redux = redux;
  handlers.active_mask = active_mask;
  handlers.elect = elect;
  handlers.barrier = barrier;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
