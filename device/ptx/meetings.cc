// SPDX-License-Identifier: Apache-2.0
//
// Collective operations of a warp's lanes: shuffles, votes, matches, sums and barriers.
//
// A step with a member mask waits until all live members have arrived, possibly in several leaves.
// The last leaf to arrive does the work for all.
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

// Calls f with all lanes that meet here as the active ones.
template <class F>
MC_INLINE const Step* together(LaneWarp& w, const Step* s, Mask mask, F f) {
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

// The lanes that lane l's mask selects. In a warp of 128 lanes they are among the lane's own group
// of 32, which is what CUDA's headers expect. A mask of the whole warp (kWholeWarp) selects all
// lanes if it is full, otherwise lanes among the first 32.
MC_INLINE Mask named(const Step* s, uint32_t mask, int l) {
  if constexpr (kLanes == 32) return mask;
  if ((s->flags & kWholeWarp) == 0) return Mask{mask} << (l & ~31);
  return mask == 0xFFFFFFFF ? kAllLanes : Mask{mask};
}

// A set of lanes as a mask that lane l gets.
MC_INLINE uint32_t mask_for(const Step* s, Mask lanes, int l) {
  const bool is_of_warp = kLanes == 32 || (s->flags & kWholeWarp) != 0;
  return static_cast<uint32_t>(is_of_warp ? lanes : lanes >> (l & ~31));
}

// The union of the lanes that the present lanes' masks select.
Mask members(const LaneWarp& w, const Step* s, const uint32_t* masks) {
  if constexpr (kLanes == 32) {
    uint32_t all = 0;
    if (w.is_full()) {
      for (int l = 0; l < kLanes; ++l) all |= masks[l];
    } else {
      for (int l = 0; l < kLanes; ++l) all |= masks[l] & static_cast<uint32_t>(w.chosen[l]);
    }
    return all;
  }
  Mask all = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (has(w.active, l)) all |= named(s, masks[l], l);
  }
  return all;
}

// The lanes that are not in their own mask.
Mask unnamed(const LaneWarp& w, const Step* s, const uint32_t* masks) {
  Mask lanes = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (has(w.active, l) && !has(named(s, masks[l], l), l)) lanes |= bit(l);
  }
  return lanes;
}

// Calls f with all lanes that the masks at an offset name. The masks may differ, where each part of
// a warp has its own.
template <class F>
MC_INLINE const Step* by_masks(LaneWarp& w, const Step* s, uint32_t offset, F f) {
  const uint32_t* masks = w.at<uint32_t>(offset);
  const Mask mask = members(w, s, masks);
  if (mask == kAllLanes) return together(w, s, mask, f);
  const Mask outside = unnamed(w, s, masks);
  if (outside != 0 && (s->flags & kWholeWarp) != 0) {
    report(*w.block, w, s, FindingKind::kDeadlock, w.thread(lowest(outside)),
           "the thread is not in the mask of its own instruction: of a warp of 128 threads, a mask "
           "that is not full names the first 32");
    return stop_warp(w);
  }
  check_membership(w, s, ~(outside & mask));
  return together(w, s, mask, f);
}

// Accesses of the lanes that meet are ordered, each part's own.
void order(LaneWarp& w, const Step* s) {
  w.stamp = ++*w.block->now;
  const uint32_t* masks = w.at<uint32_t>(s->a);
  for (Mask left = w.active; left != 0;) {
    const int l = lowest(left);
    const Mask part = named(s, masks[l], l) & w.active;
    if (part == w.live) {
      w.since = w.stamp;
      return;
    }
    meet(*w.block, w, lane_set(part));
    left &= ~(part | bit(l));
  }
}

const Step* warp_barrier(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return by_masks(w, s, s->a, [&] { order(w, s); });
}

enum class Shuffle : uint32_t { kUp, kDown, kButterfly, kIndex };

// The lane that lane l reads, and whether it is in range. Segments are within groups of 32, whose
// numbers of lanes have 5 bits, or within the whole warp. There, a distance of a warp or more has
// no lane.
MC_INLINE int source_lane(const Step* s, int l, uint32_t b, uint32_t c, bool& in_range) {
  const bool is_of_warp = kLanes != 32 && (s->flags & kWholeWarp) != 0;
  const Shuffle mode = static_cast<Shuffle>(s->flags & 3);
  const int bits = is_of_warp ? kLanes - 1 : 31;
  const int group = l & ~bits, own = l & bits;
  const bool is_far = is_of_warp && mode != Shuffle::kIndex && b >= static_cast<uint32_t>(kLanes);
  const int distance = is_far ? kLanes : static_cast<int>(b) & bits;
  const int clamp = static_cast<int>(c) & bits;
  const int segment = static_cast<int>(c >> 8) & bits;
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
  return by_masks(w, s, s->e, [&] {
    const uint32_t *a = w.at<uint32_t>(s->a), *b = w.at<uint32_t>(s->b), *c = w.at<uint32_t>(s->c);
    alignas(32) uint32_t values[kLanes];
    Mask in_ranges = 0;
    for (int l = 0; l < kLanes; ++l) {
      bool in_range = false;
      const int source = source_lane(s, l, b[l], c[l], in_range);
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

const Step* vote(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return by_masks(w, s, s->e, [&] {
    const Mask set = predicate(w, s, s->a, kNegated) & w.active;
    const uint32_t* masks = w.at<uint32_t>(s->e);
    const Vote kind = static_cast<Vote>(s->immediate);
    if (kind == Vote::kBallot) {
      each_lane(w, w.at<uint32_t>(s->d),
                [&](int l) { return mask_for(s, set & named(s, masks[l], l), l); });
      return;
    }
    Mask result = 0;
    for (int l = 0; l < kLanes; ++l) {
      const Mask there = w.active & named(s, masks[l], l), yes = set & there;
      const bool holds = kind == Vote::kAll   ? yes == there
                         : kind == Vote::kAny ? yes != 0
                                              : yes == 0 || yes == there;
      result |= Mask{holds} << l;
    }
    set_predicate(w, s->d, result);
  });
}

template <class T>
void match_lanes(LaneWarp& w, const Step* s) {
  const T* a = w.at<T>(s->a);
  const uint32_t* masks = w.at<uint32_t>(s->e);
  const bool wants_all = (s->flags & 1) != 0;
  alignas(32) uint32_t values[kLanes];
  Mask equal = 0;
  for (int l = 0; l < kLanes; ++l) {
    const Mask there = w.active & named(s, masks[l], l);
    Mask same = 0;
    for (Mask left = there; left != 0; left &= left - 1) {
      if (a[lowest(left)] == a[l]) same |= bit(lowest(left));
    }
    values[l] = wants_all && same != there ? 0 : mask_for(s, same, l);
    if (same == there) equal |= bit(l);
  }
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return values[l]; });
  if (s->c != 0) set_predicate(w, s->c, equal);
}

const Step* match(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return by_masks(w, s, s->e, [&] {
    s->immediate == 8 ? match_lanes<uint64_t>(w, s) : match_lanes<uint32_t>(w, s);
  });
}

// The immediate of redux is 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor; the flag is set for signed
// numbers.
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

// REQUIRES: one lane at least.
uint32_t reduced_lanes(const Step* s, const uint32_t* a, Mask lanes) {
  uint32_t result = a[lowest(lanes)];
  for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1) {
    result = reduced(s->immediate, (s->flags & 1) != 0, result, a[lowest(lanes)]);
  }
  return result;
}

const Step* redux(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return by_masks(w, s, s->e, [&] {
    const uint32_t *a = w.at<uint32_t>(s->a), *masks = w.at<uint32_t>(s->e);
    alignas(32) uint32_t values[kLanes];
    Mask last = 0;
    uint32_t result = 0;
    for (int l = 0; l < kLanes; ++l) {
      const Mask there = w.active & named(s, masks[l], l);
      if (there != last && there != 0) result = reduced_lanes(s, a, there);
      last = there;
      values[l] = result;
    }
    each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return values[l]; });
  });
}

const Step* active_mask(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Mask active = w.active;
  each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return mask_for(s, active, l); });
  return s + 1;
}

// The lowest lane of the members is elected.
const Step* elect(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  return by_masks(w, s, s->e, [&] {
    const uint32_t* masks = w.at<uint32_t>(s->e);
    alignas(32) uint32_t leaders[kLanes] = {};
    Mask elected = 0;
    for (int l = 0; l < kLanes; ++l) {
      const Mask there = w.active & named(s, masks[l], l);
      if (there == 0) continue;
      leaders[l] = static_cast<uint32_t>(lowest(there)) & 31;
      if (lowest(there) == l) elected |= bit(l);
    }
    if (s->d != 0) each_lane(w, w.at<uint32_t>(s->d), [&](int l) { return leaders[l]; });
    set_predicate(w, s->c, elected);
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
