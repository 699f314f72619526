// SPDX-License-Identifier: Apache-2.0
//
// Control flow: branches, joins, calls and returns of a part of a warp's lanes.
//
// A warp is a tree of leaves (lanes.h). A branch that divides the lanes of a leaf turns it into a
// parent with a child for each side, and the parent continues when its children have arrived at the
// join: the branch's immediate post-dominator. Lanes that leave a loop one after the other arrive
// at the loop's join without new leaves. A spinning leaf lets the other leaves run.
#include "core/check.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

constexpr int kDepthMax = 1000;
constexpr uint64_t kTicksMin = 17;  // The time between two reads of a clock.
constexpr uint64_t kGlobalTime = 1'764'000'000'000'000'000;  // %globaltimer when %clock is 0.
constexpr int kBuiltinPrice = 8;  // In backward branches, for each thread.

int32_t price_of(int64_t steps) { return 1 + static_cast<int32_t>(steps / kStepsOfBranch); }

Leaf& current(LaneWarp& w) { return w.leaves[static_cast<size_t>(w.current)]; }

int new_leaf(LaneWarp& w) {
  for (size_t k = 0; k < w.leaves.size(); ++k) {
    if (w.leaves[k].state == Leaf::State::kFree) return static_cast<int>(k);
  }
  w.leaves.emplace_back();
  return static_cast<int>(w.leaves.size()) - 1;
}

// Called when a child's lanes have arrived or left. The parent continues after its last child.
const Step* child_done(LaneWarp& w, int parent) {
  while (parent >= 0) {
    Leaf& p = w.leaves[static_cast<size_t>(parent)];
    MC_CHECK(p.children > 0);
    if (--p.children > 0) return nullptr;
    if (p.callee_frame != nullptr) w.spare_frames.push_back(p.callee_frame);
    p.callee_frame = nullptr;
    p.is_call = false;
    if (p.arrived != 0) {
      p.state = Leaf::State::kRuns;
      p.lanes = p.arrived;
      p.arrived = 0;
      return resume(w, parent);
    }
    p.state = Leaf::State::kFree;
    parent = p.parent;
  }
  return nullptr;
}

// Removes some of the present lanes; the others continue.
const Step* without(LaneWarp& w, const Step* s, Mask gone) {
  const Mask rest = w.active & ~gone;
  if (rest != 0) {
    w.set(rest);
    current(w).lanes = rest;
    return s + 1;
  }
  current(w).state = Leaf::State::kFree;
  return child_done(w, current(w).parent);
}

Mask condition(LaneWarp& w, const Step* s) {
  if (s->flags & kAlways) return kAllLanes;
  return predicate(w, s, s->a, kNegated);
}

// The present leaf stays and waits at `at`, since its children rejoin there and it goes on with the
// lanes that arrived.
int become_parent(LaneWarp& w, const Step* at) {
  wait(w, Leaf::State::kWaitsForChildren, at);
  current(w).arrived = 0;
  current(w).children = 0;
  return w.current;
}

// Makes a part of the present lanes a child of their leaf. Lanes that are already at the join
// count as arrived.
void divide(LaneWarp& w, int parent, const Step* at, Mask lanes) {
  if (at == w.leaves[static_cast<size_t>(parent)].at) {
    w.leaves[static_cast<size_t>(parent)].arrived |= lanes;
    return;
  }
  const int index = new_leaf(w);
  Leaf& p = w.leaves[static_cast<size_t>(parent)];
  Leaf& child = w.leaves[static_cast<size_t>(index)];
  child = Leaf{};
  child.state = Leaf::State::kRuns;
  child.at = at;
  child.join = p.at;
  child.lanes = lanes;
  child.parent = parent;
  child.depth = p.depth;
  child.local_base = p.local_base;
  child.frame = p.frame;
  child.code = p.code;
  ++p.children;
  w.current = index;
}

const Step* join(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  Leaf& leaf = current(w);
  if (leaf.join != s || leaf.parent < 0) return s + 1;
  w.leaves[static_cast<size_t>(leaf.parent)].arrived |= w.active;
  leaf.state = Leaf::State::kFree;
  return child_done(w, leaf.parent);
}

// Guarded steps: those that follow, up to c steps, run for the lanes of the predicate.
const Step* guard(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Mask all = w.active, chosen = condition(w, s) & all;
  const Step* end = s + 1 + s->c;
  if (chosen == 0) return end;
  if (chosen == all) return s + 1;
  w.set(chosen);
  const Step* at = s + 1;
  while (at != nullptr && at != end) at = at->run(w, at);
  if (at != nullptr) w.set(all);
  return at;
}

const Step* diverge(LaneWarp& w, const Step* s, Mask yes, Mask no) {
  const Step *to = s->target, *next = s + 1;
  Leaf& leaf = current(w);
  const bool leaves_loop = s->join != nullptr && leaf.join == s->join && leaf.parent >= 0 &&
                           (to == s->join || next == s->join);
  if (leaves_loop) {
    const Mask gone = to == s->join ? yes : no;
    w.leaves[static_cast<size_t>(leaf.parent)].arrived |= gone;
    w.set(w.active & ~gone);
    leaf.lanes = w.active;
    return to == s->join ? next : to;
  }
  const int me = become_parent(w, s->join);
  divide(w, me, to, yes);
  divide(w, me, next, no);
  return resume(w, w.current);
}

// False: the launch has used up its budget.
bool begin_turn(LaneWarp& w, const Step* s) {
  const int32_t turn = w.block->launch->turn;
  const int64_t turns = 1 - w.turn / turn;
  w.turn = turn;
  if (take_turns(*w.block, turns)) return true;
  report(*w.block, w, s, FindingKind::kStepLimit, w.thread(lowest(w.active)),
         why_out_of_turns(*w.block));
  return false;
}

// The present lanes may spin until other lanes make progress.
const Step* end_turn(LaneWarp& w, const Step* s, const Step* next) {
  if (!begin_turn(w, s)) return stop_warp(w);
  wait(w, Leaf::State::kRuns, next);
  return nullptr;
}

const Step* branch(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Mask taken = condition(w, s) & w.active;
  if (s->target <= s && (w.turn -= static_cast<int32_t>(s->c)) <= 0 && taken == w.active) {
    return end_turn(w, s, s->target);
  }
  if (taken == w.active) return s->target;
  if (taken == 0) return s + 1;
  return diverge(w, s, taken, w.active & ~taken);
}

// The active lanes whose value equals that of the active lane with the lowest number.
template <class T>
Mask equal_lanes(const LaneWarp& w, const T* values) {
  Mask same = 0;
  for (int l = 0; l < kLanes; ++l) same |= Mask{values[l] == values[lowest(w.active)]} << l;
  return same & w.active;
}

// Some lanes continue at a step; the others execute the current step again.
const Step* divide_off(LaneWarp& w, const Step* s, const Step* join, const Step* to, Mask lanes) {
  const Mask others = w.active & ~lanes;
  const int me = become_parent(w, join);
  divide(w, me, s, others);
  divide(w, me, to, lanes);
  return resume(w, w.current);
}

// The lanes of each target are split off one group after the other.
const Step* indexed_branch(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const auto& targets = w.code->targets[s->c];
  const uint32_t* index = w.at<uint32_t>(s->a);
  const uint32_t wanted = index[lowest(w.active)];
  if (wanted >= targets.size()) {
    report(*w.block, w, s, FindingKind::kTrap, w.thread(lowest(w.active)),
           "the index of a branch is beyond its targets");
    return stop_warp(w);
  }
  const Step* target = targets[wanted];
  const Mask same = equal_lanes(w, index);
  if (same != w.active) return divide_off(w, s, s->join, target, same);
  if (target <= s && (w.turn -= price_of(s - target)) <= 0) return end_turn(w, s, target);
  return target;
}

// Waiting lanes check again whether all lanes are here, since they do not wait for lanes that left.
void look_again(LaneWarp& w) {
  for (Leaf& leaf : w.leaves) {
    if (leaf.state == Leaf::State::kAtMeeting) leaf.state = Leaf::State::kRuns;
  }
}

// Lanes leave by exit, and by ret of a kernel.
const Step* leave(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Mask gone = condition(w, s) & w.active;
  if (gone == 0) return s + 1;
  w.live &= ~gone;
  look_again(w);
  return without(w, s, gone);
}

void copy_params(const LaneWarp& w, Mask lanes, const uint8_t* from, const ParamArea& source,
                 uint8_t* to, const ParamArea& target) {
  const uint32_t bytes = source.bytes < target.bytes ? source.bytes : target.bytes;
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t lane = static_cast<uint32_t>(l);
    if (!has(lanes & w.active, l)) continue;
    memcpy(to + target.offset + lane * target.bytes, from + source.offset + lane * source.bytes,
           bytes);
  }
}

// A call's list: offsets and bytes of its results, then of its arguments, two words each.
ParamArea area(const Step* s, size_t index) { return {s->list[2 * index], s->list[2 * index + 1]}; }

// At a function's ret, the lanes return to the leaf that called, with their results.
const Step* give_back(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const Mask gone = condition(w, s) & w.active;
  if (gone == 0) return s + 1;
  int caller = current(w).parent;
  MC_CHECK(caller >= 0);
  while (!w.leaves[static_cast<size_t>(caller)].is_call) {
    caller = w.leaves[static_cast<size_t>(caller)].parent;
    MC_CHECK(caller >= 0);  // A function runs in a call.
  }
  Leaf& leaf = w.leaves[static_cast<size_t>(caller)];
  const Step* call = leaf.at - 1;
  for (size_t k = 0; k < w.code->results.size() && k < call->b; ++k) {
    copy_params(w, gone, w.frame, w.code->results[k], leaf.frame, area(call, k));
  }
  leaf.arrived |= gone;
  return without(w, s, gone);
}

uint8_t* new_frame(LaneWarp& w, const Code& callee) {
  if (!w.spare_frames.empty()) {
    uint8_t* frame = w.spare_frames.back();
    w.spare_frames.pop_back();
    return frame;
  }
  return allocate_frame(*w.block, callee.local_bytes * size_t{kLanes});
}

const Step* enter(LaneWarp& w, const Step* s, const Code& callee) {
  w.turn -= price_of(std::ssize(callee.steps)) + static_cast<int32_t>(callee.frame_bytes >> 12);
  if (w.turn <= 0 && !begin_turn(w, s)) return stop_warp(w);
  const uint32_t local_base = w.local_base + w.code->local_bytes;
  const bool is_deep =
      current(w).depth >= kDepthMax || local_base + callee.local_bytes > w.block->local_stride;
  uint8_t* frame = is_deep ? nullptr : new_frame(w, callee);
  if (frame == nullptr) {
    report(*w.block, w, s, FindingKind::kStackLimit, w.thread(lowest(w.active)),
           "calls are nested too deeply");
    return stop_warp(w);
  }
  w.local_base = local_base;
  MC_CHECK(callee.frame_bytes <= w.block->program->frame_bytes_max);
  fill_frame(w, callee, frame);
  for (size_t k = 0; k < callee.parameters.size() && k < s->c; ++k) {
    copy_params(w, w.active, w.frame, area(s, s->b + k), frame, callee.parameters[k]);
  }
  const int me = become_parent(w, s + 1);
  divide(w, me, callee.steps.data(), w.active);
  Leaf& caller = w.leaves[static_cast<size_t>(me)];
  caller.is_call = true;
  caller.callee_frame = frame;
  Leaf& child = current(w);
  child.join = nullptr;
  child.depth = caller.depth + 1;
  child.frame = frame;
  child.code = &callee;
  child.local_base = local_base;
  return resume(w, w.current);
}

const Step* call(Warp& base, const Step* s) { return enter(lanes_of(base), s, *s->callee); }

// Lanes that call different functions run one group after the other: the step is repeated for the
// rest.
const Step* indirect_call(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const uint64_t* address = w.at<uint64_t>(s->a);
  const int first = lowest(w.active);
  const uint64_t number = address[first] - kFunctionBase;
  const auto& callable = w.block->program->callable;
  if (number >= callable.size() || callable[number] == nullptr) {
    report(*w.block, w, s, FindingKind::kBadCall, w.thread(first),
           "an indirect call of an address that is no function's");
    return stop_warp(w);
  }
  const Mask same = equal_lanes(w, address);
  if (same == w.active) return enter(w, s, *callable[number]);
  return divide_off(w, s, s + 1, s, same);
}

const Step* nothing(Warp&, const Step* s) { return s + 1; }

// A fence of the device's scope, or of a block's.
template <bool kIsDevice>
const Step* fence_step(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  fence(*w.block, w, lane_set(w.active), kIsDevice);
  return s + 1;
}

// Other blocks run before a strong store, and before an atomic that may release waiting threads.
// So unordered updates are lost, and an incorrect lock fails, as they would on a GPU.
const Step* pause(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  Block& block = *w.block;
  const bool may_tell = w.order.device.own != 0 || block.order.published != nullptr;
  if (block.pauses_until_late >= 0) block.is_late = block.pauses_until_late-- == 0;
  const bool has_turn = block.pauses_left > 0 && (s->flags & kAlways || may_tell);
  if (!has_turn && !block.is_late) return s + 1;
  if (has_turn) --block.pauses_left;
  block.is_paused = true;
  wait(w, Leaf::State::kRuns, s + 1);
  return nullptr;
}

const Step* trap(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  report(*w.block, w, s, FindingKind::kTrap, w.thread(lowest(w.active)), "the kernel traps");
  return stop_warp(w);
}

const Step* unsupported(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  MC_CHECK(s->c < w.block->program->unsupported.size());
  const std::string& what = w.block->program->unsupported[s->c];
  report(*w.block, w, s, FindingKind::kUnsupported, w.thread(lowest(w.active)), what.c_str());
  return stop_warp(w);
}

// Reads a clock, which advances by an uneven amount at each read, so that loops that wait for a
// time end, as on a GPU.
const Step* clock(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  uint64_t& time = w.block->clock;
  time += kTicksMin + noise_at(*w.block->launch, time) % kTicksMin;
  const uint64_t now = (time + (s->c != 0 ? kGlobalTime : 0)) >> s->immediate;
  if (s->flags != 0) {
    each_lane(w, w.at<uint64_t>(s->d), [&](int) { return now; });
  } else {
    each_lane(w, w.at<uint32_t>(s->d), [&](int) { return static_cast<uint32_t>(now); });
  }
  return s + 1;
}

const Step* sleep(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  w.block->clock += w.at<uint32_t>(s->a)[lowest(w.active)];
  return s + 1;
}

// Calls a function of the runtime: printf, malloc and others.
const Step* builtin_call(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  w.turn -= kBuiltinPrice * count(w.active);
  if (w.turn <= 0 && !begin_turn(w, s)) return stop_warp(w);
  uint8_t arguments[64];
  MC_CHECK(s->c <= sizeof arguments / 8);
  for (int l = 0; l < kLanes && !w.block->stopped; ++l) {
    if (!has(w.active, l)) continue;
    const uint32_t lane = static_cast<uint32_t>(l);
    memset(arguments, 0, sizeof arguments);
    for (size_t k = 0; k < s->c; ++k) {
      const ParamArea from = area(s, s->b + k);
      memcpy(arguments + 8 * k, w.frame + from.offset + lane * from.bytes,
             from.bytes < 8 ? from.bytes : 8);
    }
    const int thread = w.thread(l);
    const uint64_t result = call_builtin(*w.block, w, s, thread, arguments);
    if (s->b == 0) continue;
    const ParamArea to = area(s, 0);
    memcpy(w.frame + to.offset + lane * to.bytes, &result, to.bytes < 8 ? to.bytes : 8);
  }
  return w.block->stopped ? stop_warp(w) : s + 1;
}

}  // namespace

void wait(LaneWarp& w, Leaf::State state, const Step* at) {
  Leaf& leaf = current(w);
  leaf.state = state;
  leaf.at = at;
  leaf.lanes = w.active;
}

const Step* resume(LaneWarp& w, int index) {
  const Leaf& leaf = w.leaves[static_cast<size_t>(index)];
  w.current = index;
  w.frame = leaf.frame;
  w.code = leaf.code;
  w.local_base = leaf.local_base;
  w.set(leaf.lanes);
  return leaf.at;
}

const Step* stop_warp(LaneWarp& w) {
  for (Leaf& leaf : w.leaves) leaf.state = Leaf::State::kFree;
  w.live = 0;
  w.block->stopped = true;
  return nullptr;
}

bool part(LaneWarp& w) {
  for (size_t k = 0; k < w.leaves.size(); ++k) {
    if (w.leaves[k].state != Leaf::State::kWaitsForChildren || w.leaves[k].arrived == 0) continue;
    Leaf alone = w.leaves[k];
    w.leaves[k].arrived = 0;
    alone.state = Leaf::State::kRuns;
    alone.lanes = alone.arrived;
    alone.arrived = 0;
    alone.children = 0;
    alone.is_call = false;
    alone.callee_frame = nullptr;
    if (alone.parent >= 0) ++w.leaves[static_cast<size_t>(alone.parent)].children;
    w.leaves[static_cast<size_t>(new_leaf(w))] = alone;
    return true;
  }
  return false;
}

void add_flow(PlainHandlers& handlers) {
  handlers.guard = guard;
  handlers.branch = branch;
  handlers.indexed_branch = indexed_branch;
  handlers.join = join;
  handlers.leave = leave;
  handlers.give_back = give_back;
  handlers.call = call;
  handlers.indirect_call = indirect_call;
  handlers.nothing = nothing;
  handlers.fence = fence_step<true>;
  handlers.fence_of_block = fence_step<false>;
  handlers.pause = pause;
  handlers.trap = trap;
  handlers.unsupported = unsupported;
  handlers.clock = clock;
  handlers.sleep = sleep;
  handlers.builtin_call = builtin_call;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
