// SPDX-License-Identifier: Apache-2.0
// Blocks, threads and barriers; warps are in worker_warp.cc, memory accesses in worker_access.cc.
#include "runtime/worker.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include "mc_emu/errors.h"
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
constexpr uint32_t kBusyAccessesMax = 256;  // Then others get a turn.

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

// The body of every fibre.
void fibre_main() {
  Worker* worker = running_worker;
  for (;;) {
    worker->run_new_threads();
    worker->fibres_.park(worker->current_fibre_);
    worker->resume_next();
  }
}

Worker::Worker() : fibres_(fibre_main) {
  void* pages = mmap(nullptr, kDynamicPages + 2 * kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) std::abort();
  dynamic_pages_ = static_cast<char*>(pages);
  mprotect(dynamic_pages_, kPage, PROT_NONE);
  mprotect(dynamic_pages_ + kPage + kDynamicPages, kPage, PROT_NONE);
}

void Worker::run(Job* job) {
  prepare(job);
  running_worker = this;
  while (job->error.load(std::memory_order_relaxed) == 0) {
    const uint64_t position = job->next_block.fetch_add(1, std::memory_order_relaxed);
    if (position >= job->num_blocks) break;
    run_block(scheduled_block(position, job->schedule, job->num_blocks));
  }
  running_worker = nullptr;
}

void Worker::prepare(Job* job) {
  job_ = job;
  has_checks_ = Runtime::get().has_race_checks();
  num_threads_ = job->num_threads;
  arena_ = Runtime::get().arena().view();
  const uint32_t* block = job->launch->block;
  const uint32_t* grid = job->launch->grid;
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
  // A module loaded late has its own block; others share one with the C library and with this one.
  const uintptr_t own = reinterpret_cast<uintptr_t>(&mc_emu_thread_index);
  static_is_isolated_ = static_bytes_ != 0 &&
                        static_begin_ - own + kThreadBlockBytes > 2 * kThreadBlockBytes;
  const size_t rounded = (job_->launch->shared_bytes + 15) / 16 * 16;
  dynamic_ = dynamic_pages_ + kPage + kDynamicPages - rounded;
  dynamic_begin_ = reinterpret_cast<uintptr_t>(dynamic_);
}

void Worker::run_block(uint64_t block_index) {
  begin_block(block_index);
  current_fibre_ = fibres_.acquire();
  if (current_fibre_ == nullptr) std::abort();
  mc_emu_fibre_switch(&home_, current_fibre_->stack_pointer);
  settle_suspect();
}

void Worker::begin_block(uint64_t block_index) {
  block_index_ = block_index;
  mc_emu_block_index = coordinates_of(block_index, job_->launch->grid);
  next_new_ = 0;
  live_ = num_threads_;
  arrived_ = 0;
  has_global_sync_ = false;
  block_interval_ = 0;
  suspect_.is_active = false;
  barrier_waiters_.clear();
  ready_.clear();
  yielded_.clear();
  ready_head_ = yielded_head_ = 0;
  for (int first = 0; first < num_threads_; first += kWarpLanes) {
    const int lanes = std::min(num_threads_ - first, kWarpLanes);
    warps_[first / kWarpLanes] = {lanes == kWarpLanes ? ~0u : (1u << lanes) - 1, 0};
  }
  poison_shared();
}

void Worker::poison_shared() {
  const size_t dynamic_bytes = job_->launch->shared_bytes;
  if (static_bytes_ + dynamic_bytes > 0) {
    std::memset(reinterpret_cast<void*>(static_begin_), 0xFF, static_bytes_);
    std::memset(dynamic_, 0xFF, dynamic_bytes);
  }
  checker_.begin_block(static_bytes_ + dynamic_bytes, num_threads_);
}

void Worker::abandon() {
  suspect_.is_active = false;
  fibres_.abandon_all();
  mc_emu_fibre_jump(home_);
}

// --- Threads.

void Worker::run_new_threads() {
  while (next_new_ < num_threads_ && ready_head_ == ready_.size()) {
    const int index = order_[next_new_++];
    Thread& thread = threads_[index];
    thread.state = ThreadState::kRunning;
    thread.busy_accesses = 0;
    thread.lock_interval = 0;
    enter(index);
    try {
      job_->launch->invoke(job_->launch->arguments);
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

// What accesses of the current thread are recorded as, from here on.
void Worker::refresh() {
  checker_.set_thread(current_);
  const uint64_t interval = std::min(block_interval_, kIntervalMax);
  record_ = interval | static_cast<uint64_t>(current_) << kThreadShift |
            (block_index_ & kBlockMask) << kBlockShift |
            static_cast<uint64_t>(job_->number) << kLaunchShift;
}

void Worker::finish_thread() {
  Thread& thread = threads_[current_];
  thread.state = ThreadState::kDone;
  --live_;
  Warp& warp = warps_[current_ / kWarpLanes];
  warp.live &= ~(1u << current_ % kWarpLanes);
  if (suspect_.is_active) settle_suspect();
  if (arrived_ > 0 && arrived_ == live_) open_barrier();
  while (warp.waiting != 0) {
    const int lane = __builtin_ctz(warp.waiting);
    const int first = current_ / kWarpLanes * kWarpLanes;
    if (!try_complete_warp(current_ / kWarpLanes, threads_[first + lane].mask)) break;
  }
}

// Switches to whatever can run next.  The caller's thread waits, or its fibre is parked.
void Worker::resume_next() {
  Fibre* self = current_fibre_;
  int index = 0;
  if (ready_head_ == ready_.size() && next_new_ < num_threads_) {
    current_fibre_ = fibres_.acquire();
    if (current_fibre_ == nullptr) std::abort();
  } else if (pop_runnable(&index)) {
    enter(index);
    threads_[index].state = ThreadState::kRunning;
    current_fibre_ = threads_[index].fibre;
  } else if (live_ == 0) {
    mc_emu_fibre_switch(&self->stack_pointer, home_);
    return;
  } else {
    report_stuck();
  }
  if (current_fibre_ != self) {
    mc_emu_fibre_switch(&self->stack_pointer, current_fibre_->stack_pointer);
  }
}

bool Worker::pop_runnable(int* index) {
  if (ready_head_ == ready_.size() && yielded_head_ == yielded_.size()) release_active_masks();
  if (ready_head_ < ready_.size()) {
    *index = ready_[ready_head_++];
    if (ready_head_ == ready_.size()) {
      ready_.clear();
      ready_head_ = 0;
    }
    return true;
  }
  if (yielded_head_ == yielded_.size()) return false;
  *index = yielded_[yielded_head_++];
  if (yielded_head_ > kThreadsMax) {
    yielded_.erase(yielded_.begin(), yielded_.begin() + static_cast<ptrdiff_t>(yielded_head_));
    yielded_head_ = 0;
    sched_yield();
  }
  return true;
}

void Worker::wait(ThreadState state, int line, uintptr_t pc) {
  Thread& self = threads_[current_];
  self.state = state;
  self.line = line;
  self.pc = pc;
  self.fibre = current_fibre_;
  self.busy_accesses = 0;
  resume_next();
}

void Worker::yield() {
  settle_suspect();
  yielded_.push_back(static_cast<uint16_t>(current_));
  if (job_->error.load(std::memory_order_relaxed) != 0) abandon();
  wait(ThreadState::kReady, 0, 0);
}

void Worker::count_busy_access() {
  if (++threads_[current_].busy_accesses >= kBusyAccessesMax) yield();
}

// --- Barriers.

int Worker::barrier(int kind, int predicate, int line, uintptr_t pc) {
  settle_suspect();
  if (arrived_ == 0) {
    barrier_line_ = line;
    barrier_count_ = barrier_or_ = 0;
    barrier_and_ = 1;
    lines_differ_ = false;
  }
  lines_differ_ |= line != barrier_line_;
  barrier_count_ += predicate != 0;
  barrier_or_ |= predicate != 0;
  barrier_and_ &= predicate != 0;
  threads_[current_].line = line;
  threads_[current_].pc = pc;
  barrier_waiters_.push_back(static_cast<uint16_t>(current_));
  if (++arrived_ == live_) {
    open_barrier();
  } else {
    wait(ThreadState::kBarrier, line, pc);
  }
  return barrier_result_[kind];
}

// The threads that wait become ready, except the one that is running.
void Worker::open_barrier() {
  if (lines_differ_) check_barrier_lines();
  arrived_ = 0;
  ++block_interval_;
  checker_.begin_interval();
  barrier_result_[kMcEmuBarrierCount] = barrier_count_;
  barrier_result_[kMcEmuBarrierAnd] = barrier_and_;
  barrier_result_[kMcEmuBarrierOr] = barrier_or_;
  for (const uint16_t index : barrier_waiters_) {
    if (threads_[index].state != ThreadState::kBarrier) continue;
    threads_[index].state = ThreadState::kReady;
    ready_.push_back(index);
  }
  barrier_waiters_.clear();
  refresh();
}

void Worker::check_barrier_lines() {
  const Thread& first = threads_[barrier_waiters_[0]];
  for (const uint16_t index : barrier_waiters_) {
    const Thread& thread = threads_[index];
    if (thread.line == first.line) continue;
    const Coordinates a = coordinates_[barrier_waiters_[0]];
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
    const Thread& thread = threads_[i];
    if (thread.state == ThreadState::kBarrier && at_barrier++ == 0) barrier = &thread;
    if (thread.state == ThreadState::kWarp && at_warp++ == 0) warp = &thread;
    if (thread.state == ThreadState::kWarp || thread.state == ThreadState::kBarrier) current_ = i;
  }
  char detail[256];
  std::snprintf(detail, sizeof detail,
                "no thread of the block can go on: %d wait at a block barrier (first: line %d), %d "
                "at a warp operation (first: line %d, mask 0x%08x)",
                at_barrier, barrier == nullptr ? 0 : barrier->line, at_warp,
                warp == nullptr ? 0 : warp->line, warp == nullptr ? 0 : warp->mask);
  mc_emu_thread_index = coordinates_[current_];
  fail("deadlock", cudaErrorLaunchFailure, warp != nullptr ? warp->pc : barrier->pc, detail);
}

}  // namespace mc::emu
