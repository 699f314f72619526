// SPDX-License-Identifier: Apache-2.0
// Blocks, threads and barriers; warps are in worker_warp.cc, memory accesses in worker_access.cc.
#include "runtime/worker.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "mc_emu/errors.h"
#include "runtime/check.h"
#include "runtime/coordinates.h"
#include "runtime/runtime.h"

#pragma GCC visibility push(default)
extern "C" {
__thread mc::emu::Coordinates mc_emu_thread_index;
__thread mc::emu::Coordinates mc_emu_block_index;
__thread mc::emu::Coordinates mc_emu_block_dim;
__thread mc::emu::Coordinates mc_emu_grid_dim;
}
#pragma GCC visibility pop

namespace mc::emu {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kDynamicPages = kDynamicPagesBytes - 2 * kPage;
constexpr uintptr_t kThreadBlockBytes = 64 * 1024;  // Around this library's thread-local variables.
constexpr int kRandomYieldsMax = 64;                // A block.
constexpr uint32_t kBusyAccessesMax = 256;          // Then others get a turn.

Coordinates coordinates_of(uint64_t index, const uint32_t* shape) {
  return {static_cast<uint32_t>(index % shape[0]),
          static_cast<uint32_t>(index / shape[0] % shape[1]),
          static_cast<uint32_t>(index / shape[0] / shape[1])};
}

// A stride that visits every one of `count` blocks once.
uint64_t coprime_stride(uint64_t seed, uint64_t count) {
  uint64_t stride = seed * 0x9E3779B97F4A7C15u % count | 1;
  while (std::gcd(stride, count) != 1) stride += 2;
  return stride % count == 0 ? 1 : stride % count;
}

uint64_t scheduled_block(uint64_t position, uint64_t schedule, uint64_t count) {
  if (schedule == 0 || count < 2) return position;
  if (schedule == 1) return count - 1 - position;
  // Grids have fewer than 2^63 blocks; larger products only wrap for grids of more than 2^32.
  return (position * coprime_stride(schedule, count) + schedule % count) % count;
}

}  // namespace

thread_local constinit Worker* running_worker = nullptr;

// The body of every fiber.
void fiber_main() {
  Worker* worker = running_worker;
  for (;;) {
    worker->run_new_threads();
    worker->fibers_.park(worker->current_fiber_);
    worker->resume_next();
  }
}

Worker::Worker() : fibers_(fiber_main) {
  void* pages = mmap(nullptr, kDynamicPages + 2 * kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MC_EMU_CHECK(pages != MAP_FAILED);
  dynamic_pages_ = static_cast<char*>(pages);
  mprotect(dynamic_pages_, kPage, PROT_NONE);
  mprotect(dynamic_pages_ + kPage + kDynamicPages, kPage, PROT_NONE);
  pthread_attr_t attributes;
  void* stack = nullptr;
  size_t size = 0;
  MC_EMU_CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
  pthread_attr_getstack(&attributes, &stack, &size);
  pthread_attr_destroy(&attributes);
  stack_begin_ = reinterpret_cast<uintptr_t>(stack);
  stack_end_ = stack_begin_ + size;
}

void Worker::run(Job* job) {
  MC_EMU_CHECK(running_worker == nullptr);  // A kernel launches no kernel here.
  prepare(job);
  running_worker = this;
  if (is_cooperative()) {
    run_cooperatively();
  } else {
    run_blocks();
  }
  running_worker = nullptr;
  if (reads_given_) Runtime::get().call().note_given_read();
}

void Worker::run_blocks() {
  while (job_->error.load(std::memory_order_relaxed) == 0) {
    const uint64_t position = job_->next_block.fetch_add(1, std::memory_order_relaxed);
    if (position >= job_->num_blocks) break;
    run_block(scheduled_block(position, job_->schedule, job_->num_blocks));
  }
}

void Worker::prepare(Job* job) {
  job_ = job;
  has_checks_ = Runtime::get().has_race_checks();
  reads_given_ = false;
  num_threads_ = job->num_threads;
  arena_ = Runtime::get().arena().view();
  const uint32_t* block = job->launch->block;
  const uint32_t* grid = job->launch->grid;
  MC_EMU_CHECK(num_threads_ > 0 && num_threads_ <= kThreadsMax);
  MC_EMU_CHECK(uint64_t{block[0]} * block[1] * block[2] == static_cast<uint64_t>(num_threads_));
  MC_EMU_CHECK(uint64_t{grid[0]} * grid[1] * grid[2] == job->num_blocks);
  mc_emu_block_dim = {block[0], block[1], block[2]};
  mc_emu_grid_dim = {grid[0], grid[1], grid[2]};
  if (shape_.x != block[0] || shape_.y != block[1] || shape_.z != block[2]) {
    shape_ = mc_emu_block_dim;
    for (int i = 0; i < num_threads_; ++i) {
      coordinates_[i] = coordinates_of(static_cast<uint64_t>(i), block);
    }
  }
  std::iota(order_.begin(), order_.begin() + num_threads_, uint16_t{0});
  if (job->schedule == 1) std::reverse(order_.begin(), order_.begin() + num_threads_);
  if (job->schedule > 1) {
    std::mt19937_64 random(job->schedule);
    for (int i = num_threads_ - 1; i > 0; --i) {
      std::swap(order_[i], order_[random() % static_cast<uint64_t>(i + 1)]);
    }
  }
  find_shared();
}

void Worker::find_shared() {
  static_begin_ = 0;
  static_bytes_ = 0;
  if (job_->module != nullptr) {
    static_begin_ = reinterpret_cast<uintptr_t>(job_->module->shared_begin());
    static_bytes_ = job_->module->shared_bytes();
  }
  data_begin_ = data_end_ = 0;
  if (job_->module != nullptr && job_->module->data_shadow() != nullptr) {
    data_begin_ = job_->module->data_begin();
    data_end_ = job_->module->data_end();
    data_shadow_ = job_->module->data_shadow();
  }
  // A module loaded late has its own block; others share one with the C library and with this one.
  const uintptr_t own = reinterpret_cast<uintptr_t>(&mc_emu_thread_index);
  static_is_isolated_ =
      static_bytes_ != 0 && static_begin_ - own + kThreadBlockBytes > 2 * kThreadBlockBytes;
  const size_t rounded = (job_->launch->shared_bytes + 15) / 16 * 16;
  MC_EMU_CHECK(rounded <= kDynamicPages);
  dynamic_ = dynamic_pages_ + kPage + kDynamicPages - rounded;
  dynamic_begin_ = reinterpret_cast<uintptr_t>(dynamic_);
}

void Worker::run_block(uint64_t block_index) {
  begin_block(block_index);
  enter_fibers();
}

// Returns when the block is over, suspended or abandoned.
void Worker::enter_fibers() {
  current_fiber_ = fibers_.acquire();
  MC_EMU_CHECK(current_fiber_ != nullptr);
  mc_emu_fiber_switch(&home_, current_fiber_->stack_pointer);
  commit_pending_write();
}

// --- Cooperative launches.

void Worker::run_cooperatively() {
  std::vector<std::unique_ptr<Block>> saved(job_->num_blocks);
  size_t num_waiting = 0;
  for (uint64_t position = 0; position < job_->num_blocks && job_->error == 0; ++position) {
    run_block(scheduled_block(position, job_->schedule, job_->num_blocks));
    if (block_.live == 0) continue;
    suspend_block(&saved[position]);
    ++num_waiting;
  }
  while (num_waiting > 0 && job_->error == 0) {
    if (num_waiting < job_->num_blocks) {
      report_stuck_grid(job_->num_blocks - num_waiting);
      return;
    }
    job_->number = Runtime::get().next_launch_number();
    num_waiting = 0;
    for (std::unique_ptr<Block>& block : saved) {
      resume_block(&block);
      enter_fibers();
      if (job_->error != 0) return;
      if (block_.live == 0) continue;
      suspend_block(&block);
      ++num_waiting;
    }
  }
}

void Worker::report_stuck_grid(uint64_t num_finished) {
  Finding f = finding("deadlock", 0);
  std::snprintf(f.detail, sizeof f.detail,
                "blocks wait at a grid barrier that %zu of %zu blocks never reach",
                static_cast<size_t>(num_finished), static_cast<size_t>(job_->num_blocks));
  Runtime::get().report().add(f);
  job_->error = cudaErrorLaunchFailure;
}

void Worker::suspend_block(std::unique_ptr<Block>* saved) {
  MC_EMU_CHECK(*saved == nullptr && block_.live > 0);
  const char* static_shared = reinterpret_cast<const char*>(static_begin_);
  block_.shared.assign(static_shared, static_shared + static_bytes_);
  block_.shared.insert(block_.shared.end(), dynamic_, dynamic_ + job_->launch->shared_bytes);
  *saved = std::make_unique<Block>(std::move(block_));
}

// All threads of the block wait at the grid barrier, and become ready.
void Worker::resume_block(std::unique_ptr<Block>* saved) {
  MC_EMU_CHECK(*saved != nullptr);
  block_ = std::move(**saved);
  saved->reset();
  block_.checker.follow(&block_.order);
  MC_EMU_CHECK(block_.shared.size() == static_bytes_ + job_->launch->shared_bytes);
  MC_EMU_CHECK(block_.grid_waiters.size() == static_cast<size_t>(block_.live));
  mc_emu_block_index = coordinates_of(block_.index, job_->launch->grid);
  std::memcpy(reinterpret_cast<void*>(static_begin_), block_.shared.data(), static_bytes_);
  std::memcpy(dynamic_, block_.shared.data() + static_bytes_, job_->launch->shared_bytes);
  begin_interval();
  for (const uint16_t index : block_.grid_waiters) {
    block_.threads[index].state = ThreadState::kReady;
    block_.ready.push_back(index);
  }
  block_.grid_waiters.clear();
}

void Worker::grid_barrier(int line, uintptr_t pc) {
  commit_pending_write();
  if (!is_cooperative()) {
    fail("deadlock", cudaErrorLaunchFailure, pc,
         "a grid barrier in a kernel that was not launched cooperatively");
  }
  block_.grid_waiters.push_back(static_cast<uint16_t>(current_));
  wait(ThreadState::kGridBarrier, line, pc);
}

void Worker::begin_block(uint64_t block_index) {
  MC_EMU_CHECK(block_index < job_->num_blocks);
  block_.index = block_index;
  mc_emu_block_index = coordinates_of(block_index, job_->launch->grid);
  job_->num_begun.fetch_add(1, std::memory_order_relaxed);
  block_.next_new = 0;
  block_.live = num_threads_;
  block_.arrived = 0;
  block_.yield_state = block_.index ^ job_->schedule;
  block_.num_random_yields = block_.num_paused = 0;
  pending_write_.is_active = false;
  block_.copies.clear();
  block_.barrier_waiters.clear();
  block_.grid_waiters.clear();
  block_.ready.clear();
  block_.yielded.clear();
  block_.ready_head = block_.yielded_head = 0;
  for (int first = 0; first < num_threads_; first += warp_size()) {
    block_.warps[warp_of(first)] = {first_lanes(std::min(num_threads_ - first, warp_size())), 0};
  }
  poison_shared();
}

void Worker::poison_shared() {
  const size_t dynamic_bytes = job_->launch->shared_bytes;
  if (static_bytes_ + dynamic_bytes > 0) {
    std::memset(reinterpret_cast<void*>(static_begin_), 0xFF, static_bytes_);
    std::memset(dynamic_, 0xFF, dynamic_bytes);
  }
  block_.order.begin_block(block_.index & kBlockMask, &job_->order);
  block_.checker.begin_block(static_bytes_ + dynamic_bytes, num_threads_, &block_.order);
}

void Worker::abandon() {
  pending_write_.is_active = false;
  fibers_.abandon_all();
  mc_emu_fiber_jump(home_);
}

// --- Threads.

void Worker::run_new_threads() {
  while (block_.next_new < num_threads_ && block_.ready_head == block_.ready.size()) {
    const int index = order_[block_.next_new++];
    Thread& thread = block_.threads[index];
    thread.state = ThreadState::kRunning;
    thread.busy_accesses = 0;
    enter(index);
    try {
      job_->launch->invoke(job_->launch->arguments);
      if (!block_.copies.empty()) wait_for_copies(kEveryGroup);
    } catch (...) {
      fail("device_assert", cudaErrorLaunchFailure, 0, "a C++ exception left the kernel");
    }
    finish_thread();
  }
}

void Worker::enter(int index) {
  current_ = index;
  mc_emu_thread_index = coordinates_[index];
  refresh();
}

// The record of the current thread's accesses, from here on.
void Worker::refresh() {
  block_.checker.set_thread(current_, block_.order.step());
  const uint64_t step = std::min(block_.order.step(), kStepMax);
  record_ = step | static_cast<uint64_t>(current_) << kThreadShift |
            (block_.index & kBlockMask) << kBlockShift |
            static_cast<uint64_t>(job_->number) << kLaunchShift;
}

void Worker::finish_thread() {
  Thread& thread = block_.threads[current_];
  MC_EMU_CHECK(thread.state == ThreadState::kRunning && block_.live > 0);
  thread.state = ThreadState::kDone;
  --block_.live;
  const int index = warp_of(current_);
  Warp& warp = block_.warps[index];
  MC_EMU_CHECK((warp.live & only_lane(lane_of(current_))) != 0);
  warp.live &= ~only_lane(lane_of(current_));
  if (pending_write_.is_active) commit_pending_write();
  if (block_.arrived > 0 && block_.arrived == block_.live) open_barrier();
  while (warp.waiting != 0) {
    if (!try_complete_warp(index << warp_shift | lowest_lane(warp.waiting))) break;
  }
}

// Switches to whatever can run next.  The caller's thread waits, or its fiber is parked.
void Worker::resume_next() {
  Fiber* self = current_fiber_;
  int index = 0;
  if (block_.ready_head == block_.ready.size() && block_.next_new < num_threads_) {
    current_fiber_ = fibers_.acquire();
    MC_EMU_CHECK(current_fiber_ != nullptr);
  } else if (pop_runnable(&index)) {
    enter(index);
    block_.threads[index].state = ThreadState::kRunning;
    current_fiber_ = block_.threads[index].fiber;
  } else if (block_.grid_waiters.size() == static_cast<size_t>(block_.live)) {
    // The block is over, or waits for others.
    mc_emu_fiber_switch(&self->stack_pointer, home_);
    return;
  } else {
    report_stuck();
  }
  if (current_fiber_ != self) {
    mc_emu_fiber_switch(&self->stack_pointer, current_fiber_->stack_pointer);
  }
}

bool Worker::pop_runnable(int* index) {
  if (block_.ready_head == block_.ready.size() && block_.yielded_head == block_.yielded.size())
    release_active_masks();
  if (block_.ready_head < block_.ready.size()) {
    *index = block_.ready[block_.ready_head++];
    if (block_.ready_head == block_.ready.size()) {
      block_.ready.clear();
      block_.ready_head = 0;
    }
    return true;
  }
  if (block_.yielded_head == block_.yielded.size()) return false;
  *index = block_.yielded[block_.yielded_head++];
  if (block_.yielded_head > kThreadsMax) {
    block_.yielded.erase(block_.yielded.begin(),
                         block_.yielded.begin() + static_cast<ptrdiff_t>(block_.yielded_head));
    block_.yielded_head = 0;
    sched_yield();
  }
  return true;
}

void Worker::wait(ThreadState state, int line, uintptr_t pc) {
  Thread& self = block_.threads[current_];
  MC_EMU_CHECK(self.state == ThreadState::kRunning);
  self.state = state;
  self.line = line;
  self.pc = pc;
  self.fiber = current_fiber_;
  self.busy_accesses = 0;
  block_.order.settle(current_);
  resume_next();
}

void Worker::yield() {
  commit_pending_write();
  // Alone in its block it waits for another one, which may need this processor.
  const bool is_alone = block_.ready_head == block_.ready.size() &&
                        block_.yielded_head == block_.yielded.size() &&
                        block_.next_new == num_threads_;
  if (is_alone) sched_yield();
  block_.yielded.push_back(static_cast<uint16_t>(current_));
  if (job_->error.load(std::memory_order_relaxed) != 0) abandon();
  wait(ThreadState::kReady, 0, 0);
}

// An atomic orders nothing but itself: now and then others run before it, so that what only looks
// like one operation (a load and an exchange, each atomic) loses updates here as on a device.
void Worker::yield_randomly() {
  if (block_.num_random_yields == kRandomYieldsMax) return;
  block_.yield_state = block_.yield_state * 6364136223846793005u + 1442695040888963407u;
  if (block_.yield_state >> 62 != 0) return;
  ++block_.num_random_yields;
  yield();
}

void Worker::count_busy_access() {
  if (++block_.threads[current_].busy_accesses >= kBusyAccessesMax) yield();
}

// --- Barriers.

int Worker::barrier(int kind, int predicate, int line, uintptr_t pc) {
  commit_pending_write();
  if (block_.arrived == 0) {
    block_.barrier_line = line;
    block_.barrier_count = block_.barrier_or = 0;
    block_.barrier_and = 1;
    block_.lines_differ = false;
  }
  block_.lines_differ |= line != block_.barrier_line;
  block_.barrier_count += predicate != 0;
  block_.barrier_or |= predicate != 0;
  block_.barrier_and &= predicate != 0;
  block_.threads[current_].line = line;
  block_.threads[current_].pc = pc;
  block_.barrier_waiters.push_back(static_cast<uint16_t>(current_));
  if (++block_.arrived == block_.live) {
    open_barrier();
  } else {
    wait(ThreadState::kBarrier, line, pc);
  }
  return block_.barrier_result[kind];
}

// The acts of the block's threads so far are ordered.
void Worker::begin_interval() {
  block_.order.barrier(num_threads_);
  block_.checker.begin_interval(num_threads_, block_.order.step());
}

// The threads that wait become ready, except the one that is running.
void Worker::open_barrier() {
  if (block_.lines_differ) check_barrier_lines();
  MC_EMU_CHECK(block_.barrier_waiters.size() == static_cast<size_t>(block_.arrived));
  block_.arrived = 0;
  begin_interval();
  block_.barrier_result[kMcEmuBarrierCount] = block_.barrier_count;
  block_.barrier_result[kMcEmuBarrierAnd] = block_.barrier_and;
  block_.barrier_result[kMcEmuBarrierOr] = block_.barrier_or;
  for (const uint16_t index : block_.barrier_waiters) {
    if (block_.threads[index].state != ThreadState::kBarrier) continue;
    block_.threads[index].state = ThreadState::kReady;
    block_.ready.push_back(index);
  }
  block_.barrier_waiters.clear();
  refresh();
}

void Worker::check_barrier_lines() {
  const Thread& first = block_.threads[block_.barrier_waiters[0]];
  for (const uint16_t index : block_.barrier_waiters) {
    const Thread& thread = block_.threads[index];
    if (thread.line == first.line) continue;
    const Coordinates a = coordinates_[block_.barrier_waiters[0]];
    const Coordinates b = coordinates_[index];
    char detail[256];
    std::snprintf(detail, sizeof detail,
                  "threads of one block wait at different barriers: thread (%u,%u,%u) at line %d, "
                  "thread (%u,%u,%u) at line %d",
                  a.x, a.y, a.z, first.line, b.x, b.y, b.z, thread.line);
    fail("divergent_barrier", cudaErrorLaunchFailure, thread.pc, detail);
  }
}

void Worker::report_stuck() {
  int at_barrier = 0;
  int at_warp = 0;
  const Thread* barrier = nullptr;
  const Thread* warp = nullptr;
  for (int i = 0; i < num_threads_; ++i) {
    const Thread& thread = block_.threads[i];
    if (thread.state == ThreadState::kBarrier && at_barrier++ == 0) barrier = &thread;
    if (thread.state == ThreadState::kWarp && at_warp++ == 0) warp = &thread;
    if (thread.state == ThreadState::kWarp || thread.state == ThreadState::kBarrier) current_ = i;
  }
  char detail[256];
  std::snprintf(detail, sizeof detail,
                "no thread of the block can go on: %d wait at a block barrier (first: line %d), %d "
                "at a warp operation (first: line %d, mask 0x%08x)%s",
                at_barrier, barrier == nullptr ? 0 : barrier->line, at_warp,
                warp == nullptr ? 0 : warp->line, warp == nullptr ? 0 : warp->mask,
                warp != nullptr && warp_size() == kLanesMax
                    ? "; warps have 128 threads here, and a full mask names them all"
                    : "");
  mc_emu_thread_index = coordinates_[current_];
  const Thread* stuck = warp != nullptr ? warp : barrier;
  fail("deadlock", cudaErrorLaunchFailure, stuck == nullptr ? 0 : stuck->pc, detail);
}

}  // namespace mc::emu
