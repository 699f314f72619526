// SPDX-License-Identifier: Apache-2.0
//
// The order of work: blocks over workers, and the warps of a block in turn.
//
// A warp runs until its lanes wait. A block whose warps only spin is suspended with all its state,
// so that the block for which it waits can run. So grid barriers and locks between blocks work on
// one worker. The flags of a barrier's step are in program.h.
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "core/check.h"
#include "ptx/device.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

constexpr int kIdleTurnsMax = 2;
// The number of barriers of a block before other blocks run, since a loop with a barrier may wait
// for them.
constexpr int kBarriersOfTurn = 256;
// The price of a block without its steps, in backward branches.
constexpr uint64_t kBlockPrice = 16;
constexpr int kBarriers = 16;
constexpr size_t kPausedMax = 3;
// Rounds without a finished block until the late block runs, since the others may wait for it.
constexpr int kTurnsOfLate = 3;

// Lanes of a warp that arrived at a barrier and went on.
struct Arrival {
  uint32_t number = 0, threads = 0;
  WarpTime at;
};

struct LaneBlock : Block {
  std::span<LaneWarp> warps;
  Turns turns;
  std::vector<Arrival> arrived;
};

// One running block and its memory, which the next block reuses.
struct Context {
  LaneBlock block;
  std::vector<LaneWarp> warps;
  std::vector<const FrameValue*> of_block;  // Values that differ between blocks.
  BlockMemory* memory = nullptr;
  ~Context() { release_memory(memory); }
};

template <class T>
void fill_row(uint8_t* row, uint64_t bits) {
  T* lanes = reinterpret_cast<T*>(row);
  MC_LANES lanes[l] = static_cast<T>(bits);
}

void fill(uint8_t* row, int width, uint64_t bits) {
  if (width == 4) return fill_row<uint32_t>(row, bits);
  return width == 8 ? fill_row<uint64_t>(row, bits) : fill_row<uint16_t>(row, bits);
}

uint64_t parameter_bits(const FrameValue& value, const uint8_t* parameters) {
  uint64_t bits = 0;
  memcpy(&bits, parameters + value.bits, static_cast<size_t>(value.bytes));
  if (!value.is_signed || value.bytes == 8) return bits;
  const int shift = 64 - 8 * value.bytes;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
}

// Blocks are dealt to multiprocessors in the order of their numbers.
uint32_t multiprocessor_of(const Block& block) {
  return static_cast<uint32_t>(block.number % uint64_t{kMultiprocessors});
}

// A special register of one lane.
uint32_t special(const LaneWarp& w, Source source, int lane) {
  const Block& block = *w.block;
  const Launch& launch = *block.launch;
  const auto& [x, y, z] = launch.block;
  const uint32_t thread = static_cast<uint32_t>(w.thread(lane)), bits = 1U << (lane & 31);
  switch (source) {
#define MC_SPECIAL(source, name, value) \
  case Source::source:                  \
    return value;
#include "ptx/specials.inc"
#undef MC_SPECIAL
    default:
      MC_CHECK(source == Source::kLocalAddress);
      return w.local_base;
  }
}

bool is_of_block(Source source) {
  return (source >= Source::kCtaidX && source <= Source::kMultiprocessor) ||
         source == Source::kUnset;
}

// Fills an unset register with bytes that give a wrong sum, and a wrong maximum or minimum: NaN or
// a large number of either sign, in any type.
void fill_unset(const LaneWarp& w, const FrameValue& value, uint8_t* row) {
  constexpr uint8_t kBytes[] = {0xFF, 0x7B, 0xFB};
  const uint64_t noise = noise_at(*w.block->launch, value.offset);
  const size_t bits = value.width == 0 ? 1 : static_cast<size_t>(value.width) * 8;
  memset(row, kBytes[noise % std::size(kBytes)], bits * kLanes / 8);
}

void fill_value(const LaneWarp& w, const FrameValue& value, uint8_t* frame) {
  uint8_t* row = frame + value.offset;
  if (value.source == Source::kConstant) return fill(row, value.width, value.bits);
  if (value.source == Source::kParameter) {
    return fill(row, value.width, parameter_bits(value, w.block->parameters));
  }
  if (value.source == Source::kUnset) return fill_unset(w, value, row);
  if (is_of_block(value.source)) {
    return fill(row, value.width, special(w, value.source, 0));
  }
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t bits = special(w, value.source, l) + value.bits;
    memcpy(row + l * value.width, &bits, static_cast<size_t>(value.width));
  }
}

void open(Context& context, Launch& launch, int worker) {
  LaneBlock& block = context.block;
  context.memory = open_block(block, launch, worker, kLanes);
  context.warps.resize((launch.threads + kLanes - 1) / kLanes);
  block.warps = context.warps;
  const Code& code = *launch.program->codes.front();
  for (const FrameValue& value : code.values) {
    if (is_of_block(value.source)) context.of_block.push_back(&value);
  }
  uint32_t index = 0;
  for (LaneWarp& w : block.warps) {
    w.block = &block;
    w.index = index++;
    w.frame = frame_of_warp(context.memory, w.index);
    w.code = &code;
    fill_frame(w, code, w.frame);
  }
}

void start_warp(LaneWarp& w, uint8_t* frame, const Code& code, uint32_t threads) {
  MC_CHECK(w.index * kLanes < threads);
  const uint32_t first = w.index * kLanes, left = threads - first;
  w.live = left >= kLanes ? kAllLanes : bit(static_cast<int>(left)) - 1;
  w.leaves.resize(1);
  Leaf& root = w.leaves[0];
  root = Leaf{};
  root.state = Leaf::State::kRuns;
  root.at = code.steps.data();
  root.lanes = w.live;
  root.frame = w.frame = frame;
  root.code = w.code = &code;
  w.since = w.stamp = ++*w.block->now;
  w.met = nullptr;
  w.order = {};
  w.current = 0;
  w.turn = w.block->launch->turn;
  w.local_base = 0;
  w.pending.clear();
  w.next_group = 1;
}

void start(Context& context, uint64_t number) {
  LaneBlock& block = context.block;
  const Launch& launch = *block.launch;
  start_block(block, number);
  block.turns = turns_of(block.warps.size(), launch.seed == 0 ? 0 : launch.seed + number + 1);
  block.arrived.clear();
  const Code& code = *launch.program->codes.front();
  for (LaneWarp& w : block.warps) {
    start_warp(w, frame_of_warp(context.memory, w.index), code, launch.threads);
    for (const FrameValue* value : context.of_block) fill_value(w, *value, w.frame);
  }
}

// ---- Barriers.
struct Waiting {
  uint32_t threads = 0;
  uint32_t expected = 0;  // 0: all live threads.
  int64_t reduced = 0;    // Threads whose predicate holds.
  const Step* step = nullptr;
  const LaneWarp* warp = nullptr;
  int thread = 0, other = -1;  // Not negative: that thread waits at another step.
};

void add(Waiting& waiting, const LaneWarp& w, const Leaf& leaf) {
  const Step* s = leaf.at;
  waiting.threads += static_cast<uint32_t>(count(leaf.lanes));
  if (s->flags & kBarrierReduces) {
    const Mask mask = *reinterpret_cast<const Mask*>(leaf.frame + s->a);
    waiting.reduced += count((s->flags & kNegated ? ~mask : mask) & leaf.lanes);
  }
  const int lane = lowest(leaf.lanes);
  if (s->flags & kBarrierCounts) {
    waiting.expected = reinterpret_cast<const uint32_t*>(leaf.frame + s->b)[lane];
  }
  if (waiting.step == nullptr) {
    waiting.step = s;
    waiting.warp = &w;
    waiting.thread = w.thread(lane);
  } else if (waiting.step != s) {
    waiting.other = w.thread(lane);
  }
}

uint32_t barrier_number(const Leaf& leaf) {
  const uint32_t* numbers = reinterpret_cast<const uint32_t*>(leaf.frame + leaf.at->c);
  return numbers[lowest(leaf.lanes)] % kBarriers;
}

// The result of a barrier that reduces, for the lanes of a leaf.
void give_result(const Leaf& leaf, const Waiting& waiting) {
  const Step* s = leaf.at;
  if (s->immediate == 0) {
    uint32_t* d = reinterpret_cast<uint32_t*>(leaf.frame + s->d);
    for (Mask left = leaf.lanes; left != 0; left &= left - 1) {
      d[lowest(left)] = static_cast<uint32_t>(waiting.reduced);
    }
    return;
  }
  const bool holds = s->immediate == 1 ? waiting.reduced == waiting.threads : waiting.reduced != 0;
  Mask& mask = *reinterpret_cast<Mask*>(leaf.frame + s->d);
  mask = holds ? mask | leaf.lanes : mask & ~leaf.lanes;
}

// Lets the threads at a barrier go on.
void release(LaneBlock& block, uint32_t number, const Waiting& waiting, bool is_of_all) {
  std::vector<Warp*> here;
  for (LaneWarp& w : block.warps) {
    bool is_here = false;
    for (Leaf& leaf : w.leaves) {
      if (leaf.state != Leaf::State::kAtBarrier || barrier_number(leaf) != number) continue;
      if (leaf.at->flags & kBarrierReduces) give_result(leaf, waiting);
      leaf.state = Leaf::State::kRuns;
      ++leaf.at;
      is_here = true;
    }
    if (is_here) here.push_back(&w);
  }
  MC_CHECK(!here.empty());
  std::vector<WarpTime> arrived;
  std::erase_if(block.arrived, [&](const Arrival& one) {
    if (one.number == number) arrived.push_back(one.at);
    return one.number == number;
  });
  is_of_all ? open_barrier(block, here) : open_part(block, here, arrived);
}

// Threads of bar.arrive go on and are counted.
bool pass_arrivals(LaneBlock& block) {
  bool any = false;
  for (LaneWarp& w : block.warps) {
    for (Leaf& leaf : w.leaves) {
      if (leaf.state != Leaf::State::kAtBarrier || !(leaf.at->flags & kBarrierArrives)) continue;
      w.stamp = ++*block.now;
      block.arrived.push_back(
          {barrier_number(leaf), static_cast<uint32_t>(count(leaf.lanes)), {&w, w.stamp}});
      leaf.state = Leaf::State::kRuns;
      ++leaf.at;
      any = true;
    }
  }
  return any;
}

uint32_t arrived_at(const LaneBlock& block, uint32_t number) {
  uint32_t threads = 0;
  for (const Arrival& one : block.arrived) threads += one.number == number ? one.threads : 0;
  return threads;
}

// True if a barrier let its threads go on, or ended the block.
bool open_barriers(LaneBlock& block) {
  bool opened = pass_arrivals(block);
  Waiting all[kBarriers];
  uint32_t live = 0;
  for (LaneWarp& w : block.warps) {
    live += static_cast<uint32_t>(count(w.live));
    for (const Leaf& leaf : w.leaves) {
      if (leaf.state == Leaf::State::kAtBarrier) add(all[barrier_number(leaf)], w, leaf);
    }
  }
  for (uint32_t number = 0; number < kBarriers; ++number) {
    const Waiting& waiting = all[number];
    if (waiting.threads == 0) continue;
    MC_CHECK(waiting.threads <= live);
    const uint32_t wanted = waiting.expected != 0 ? waiting.expected : live;
    if (waiting.threads + arrived_at(block, number) < wanted) continue;
    if (waiting.expected == 0 && waiting.other >= 0) {
      report(block, *waiting.warp, waiting.step, FindingKind::kDivergentBarrier, waiting.thread,
             "threads of a block wait at different barriers", waiting.other);
      return true;
    }
    const bool is_of_all = waiting.threads == (waiting.expected == 0 ? live : block.threads);
    release(block, number, waiting, is_of_all);
    opened = true;
  }
  return opened;
}

// ---- Warps of a block.
int runnable(const LaneWarp& w, bool rotates) {
  const int n = static_cast<int>(w.leaves.size());
  for (int k = 0; k < n; ++k) {
    const int index = rotates ? (w.current + 1 + k) % n : n - 1 - k;
    if (w.leaves[static_cast<size_t>(index)].state == Leaf::State::kRuns) return index;
  }
  return -1;
}

// Runs a warp until its lanes wait or spin. `idle` counts the turns in which they only spun.
bool run_warp(LaneWarp& w, int& idle) {
  Block& block = *w.block;
  bool ran = false;
  for (bool rotates = false; !block.stopped && !block.is_paused; rotates = true) {
    const int index = runnable(w, rotates);
    if (index < 0) break;
    const bool spins = rotates && index == w.current;
    ran = true;
    const Step* at = resume(w, index);
    MC_CHECK(w.active != 0);
    while (at != nullptr) at = at->run(w, at);
    const bool goes_on = w.current == index && !w.leaves.empty() &&
                         w.leaves[static_cast<size_t>(index)].state == Leaf::State::kRuns;
    if (!goes_on) idle = 0;
    if (spins && !part(w)) break;
  }
  return ran;
}

bool is_over(const LaneBlock& block) {
  Mask live = 0;
  for (const LaneWarp& w : block.warps) live |= w.live;
  return live == 0;
}

void report_deadlock(LaneBlock& block) {
  for (LaneWarp& w : block.warps) {
    for (size_t k = 0; k < w.leaves.size(); ++k) {
      const Leaf::State state = w.leaves[k].state;
      if (state != Leaf::State::kAtBarrier && state != Leaf::State::kAtMeeting) continue;
      const Step* at = resume(w, static_cast<int>(k));
      report(block, w, at, FindingKind::kDeadlock, w.thread(lowest(w.active)),
             state == Leaf::State::kAtBarrier
                 ? "a thread waits at a barrier that others of its block never reach"
                 : "a thread waits for lanes of its warp that never come");
      return;
    }
  }
}

// Lets lanes that wait at a join for lanes at a barrier continue: they may have to leave first.
bool part_any(LaneBlock& block) {
  for (LaneWarp& w : block.warps) {
    if (part(w)) return true;
  }
  return false;
}

// False if the block only spins or pauses, so that other blocks run first.
bool run_block(LaneBlock& block) {
  int barriers_left = kBarriersOfTurn;
  for (int idle = 0; !block.stopped;) {
    bool ran = false;
    for (size_t k = 0; k < block.warps.size() && !block.is_paused; ++k) {
      const size_t turn = block.launch->is_reversed ? block.warps.size() - 1 - k : k;
      const uint64_t warp = block.launch->seed == 0 ? turn : number_at(block.turns, turn);
      ran |= run_warp(block.warps[warp], idle);
    }
    if (block.stopped) break;
    if (is_over(block)) return true;
    if (block.is_paused) {
      block.is_paused = false;
      return false;
    }
    if (open_barriers(block)) {
      idle = 0;
      if (block.program->blocks_communicate && --barriers_left == 0) return false;
      continue;
    }
    if (!ran) {
      if (part_any(block)) continue;
      report_deadlock(block);
      return true;
    }
    if (++idle > kIdleTurnsMax) return false;
  }
  return true;
}

// The turns that the blocks up to this one cost, without those up to the one before.
int64_t turns_of_block(const LaneBlock& block) {
  const int64_t steps = std::ssize(block.warps[0].code->steps);
  const uint64_t price =
      kBlockPrice + block.warps.size() * static_cast<uint64_t>(steps / kStepsOfBranch);
  MC_CHECK(block.launch->turn > 0 && !block.warps.empty());
  const auto turn = static_cast<uint64_t>(block.launch->turn);
  return static_cast<int64_t>((block.number + 1) * price / turn - block.number * price / turn);
}

void pay_for_block(LaneBlock& block) {
  const int64_t turns = turns_of_block(block);
  if (turns == 0 || take_turns(block, turns)) return;
  const LaneWarp& w = block.warps[0];
  report(block, w, w.code->steps.data(), FindingKind::kStepLimit, 0, why_out_of_turns(block));
}

// ---- Blocks of a worker.
class Worker {
 public:
  Worker(Launch& launch, int number) : launch_(launch), number_(number) {
    MC_CHECK(number >= 0 && number < launch.workers);
  }

  void run() {
    int turns = 0;
    for (bool more = true; more || !waiting_.empty() || late_ != nullptr;) {
      turns = has_ended_ ? 0 : turns + 1;
      has_ended_ = false;
      if (late_ != nullptr && !more && (waiting_.empty() || turns > kTurnsOfLate)) resume_late();
      do {
        if (more && waiting_.size() < launch_.contexts_max) more = take();
      } while (more && waiting_.size() < (launch_.starts_all ? launch_.contexts_max : paused_max_));
      // Each waiting block runs one turn, in order.
      std::vector<Context*> turn;
      turn.swap(waiting_);
      for (Context* context : turn) advance(context);
    }
    MC_CHECK(spare_.size() == all_.size());  // Each block has ended.
  }

 private:
  bool take() {
    const uint64_t wanted = launch_.blocks / (static_cast<uint64_t>(launch_.workers) * 16);
    const uint64_t chunk = launch_.workers == 1 || wanted == 0 ? 1 : wanted;
    const uint64_t first = launch_.next_block.fetch_add(chunk);
    if (first >= launch_.blocks) return false;
    const uint64_t end = first + chunk < launch_.blocks ? first + chunk : launch_.blocks;
    for (uint64_t turn = first; turn < end && !launch_.stopped; ++turn) {
      Context* context = spare();
      start(*context, launch_.seed == 0 ? turn : number_at(launch_.turns, turn));
      pay_for_block(context->block);
      advance(context);
    }
    return !launch_.stopped;
  }

  Context* spare() {
    if (spare_.empty()) {
      all_.push_back(std::make_unique<Context>());
      open(*all_.back(), launch_, number_);
      return all_.back().get();
    }
    Context* context = spare_.back();
    spare_.pop_back();
    return context;
  }

  void advance(Context* context) {
    const int pauses_left = context->block.pauses_left;
    const bool is_done = launch_.stopped || run_block(context->block);
    if (context->block.writes_what_it_read) launch_.writes_what_it_read = true;
    // Others begin while a block pauses.
    const bool has_paused = context->block.pauses_left < pauses_left;
    paused_max_ = has_paused && launch_.contexts_max > kPausedMax ? kPausedMax : 0;
    has_ended_ |= is_done;
    if (!is_done && context->block.is_late) {
      MC_CHECK(late_ == nullptr);
      late_ = context;
    } else {
      (is_done ? spare_ : waiting_).push_back(context);
    }
  }

  void resume_late() {
    late_->block.is_late = false;
    waiting_.push_back(std::exchange(late_, nullptr));
  }

  Launch& launch_;
  int number_;
  size_t paused_max_ = 0;  // Blocks that wait before none begins while one pauses.
  Context* late_ = nullptr;
  bool has_ended_ = false;  // A block ended in this turn.
  std::vector<std::unique_ptr<Context>> all_;
  std::vector<Context*> spare_, waiting_;
};

}  // namespace

void fill_frame(const LaneWarp& w, const Code& code, uint8_t* frame) {
  memset(frame, 0, code.frame_bytes);
  for (const FrameValue& value : code.values) fill_value(w, value, frame);
}

void work(Launch& launch, int worker) { Worker(launch, worker).run(); }

}  // namespace mc::ptx::MC_PTX_VARIANT
