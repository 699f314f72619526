// SPDX-License-Identifier: Apache-2.0
// One OS thread that runs thread blocks, one after the other.
//
// Theory of operation.  The CUDA threads of a block run one at a time on fibers.  A fiber runs
// successive threads to their ends as a plain loop until one of them blocks (barrier, warp
// collective, spinning); then the fiber keeps that thread's stack and another fiber goes on: with a
// thread that became ready, else with the next thread that has not started, else with one that only
// yielded.  A kernel without barriers so runs on one stack and never switches.
//
// A barrier opens when all live threads wait at it; threads that returned do not count.  A warp
// collective completes when all live lanes of its mask arrived with the same mask; the last one to
// arrive computes all results.  When nothing can run and threads are left, the block is stuck.
//
// A cooperative launch runs on one worker, in phases: each block runs until all its live threads
// wait at the grid barrier, and is put aside with its shared memory; then the next block has its
// turn.
//
// A fatal finding abandons the block: control jumps to where the block was started, and the stacks
// of its threads are forgotten without unwinding.
#ifndef MC_EMU_RUNTIME_WORKER_H_
#define MC_EMU_RUNTIME_WORKER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "mc_emu/abi.h"
#include "runtime/arena.h"
#include "runtime/fiber.h"
#include "runtime/lanes.h"
#include "runtime/module.h"
#include "runtime/order.h"
#include "runtime/race.h"
#include "runtime/report.h"

namespace mc::emu {

// The size of the mapping for dynamic shared memory, with an inaccessible page at either end.
constexpr size_t kDynamicPagesBytes = 264 * 1024;

struct Coordinates {
  uint32_t x = 0, y = 0, z = 0;
};

// A launch in progress, shared by all workers.
struct Job {
  const McEmuLaunch* launch = nullptr;
  const Module* module = nullptr;
  uint32_t number = 0;  // Counts launches, and grid barriers in them.
  uint64_t schedule = 0;
  uint64_t num_blocks = 0;
  int num_workers = 1;
  int num_threads = 0;
  std::atomic<uint64_t> next_block{0};
  std::atomic<int> error{0};  // A fatal cudaError_t stops all workers.
  LaunchOrder order;
  std::atomic<uint64_t> num_begun{0};   // Blocks.
  std::atomic<uint32_t> num_pauses{0};  // See pause_for_others().
};

enum class ThreadState : uint8_t {
  kRunning,
  kReady,
  kBarrier,
  kGridBarrier,
  kWarp,
  kActiveMask,
  kDone
};

struct Thread {
  Fiber* fiber = nullptr;
  uint64_t value = 0;  // Deposit, then result, of a warp collective.
  uint32_t mask = 0;
  int argument = 0;
  int width = 0;
  int line = 0;                // The line where it waits.
  uint32_t busy_accesses = 0;  // Since it last let others run.
  uintptr_t pc = 0;
  uint16_t kind = 0;
  ThreadState state = ThreadState::kDone;
};

struct Warp {
  LaneSet live = 0;
  LaneSet waiting = 0;  // Lanes in a collective.
};

// A store that may turn out to change nothing; settled at this worker's next event.
struct WriteSuspect {
  bool is_active = false;
  const unsigned char* address = nullptr;
  size_t size = 0;
  unsigned char before[16];
  Finding finding;
};

// The requests of one thread to cp.async and its kin.
struct AsyncCopy {
  uintptr_t to = 0, from = 0;
  uint32_t size = 0, zeros = 0;  // Bytes to copy, and to fill after them.
  uint32_t group = 0;
  uintptr_t pc = 0;
};
struct AsyncCopies {
  std::vector<AsyncCopy> items;
  uint32_t group = 0;  // The one that is open: groups before it are committed.
};

// A block in progress.  Saved and restored as a whole in a cooperative launch, else reused.
struct Block {
  uint64_t index = 0;
  int next_new = 0;  // Position in the order of threads.
  int live = 0;      // Threads that have not returned.

  // The block barrier.
  int arrived = 0;
  int barrier_line = 0;
  int barrier_count = 0;
  int barrier_and = 0;
  int barrier_or = 0;
  int barrier_result[3] = {0, 0, 0};
  bool lines_differ = false;
  std::vector<uint16_t> barrier_waiters;

  std::vector<uint16_t> grid_waiters;  // Threads at the grid barrier.
  uint64_t yield_state = 0;            // Pseudo-random state; see yield_randomly().
  int num_random_yields = 0;
  int num_paused = 0;
  std::array<Thread, kThreadsMax> threads;
  std::array<Warp, kWarpsMax> warps;
  std::vector<uint16_t> ready;  // First in, first out from ready_head.
  size_t ready_head = 0;
  std::vector<uint16_t> yielded;
  size_t yielded_head = 0;
  SharedChecker checker;
  std::map<int, AsyncCopies> copies;  // The key is a thread.
  BlockOrder order;
  std::vector<char> shared;  // While suspended: the contents of static, then dynamic shared memory.
};

class Worker;
// The worker that runs a kernel on this OS thread now, or null.
extern thread_local constinit Worker* running_worker
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// The fields of a record of device memory, low bits first: step 18, thread 10, block 20, released
// 1, bytes 4, launch 11.  worker_access.cc says what they are for.
constexpr uint32_t kStepMax = (1 << 18) - 1;
constexpr int kThreadShift = 18;
constexpr int kBlockShift = 28;
constexpr uint64_t kReleased = uint64_t{1} << 48;
constexpr int kBytesShift = 49;
constexpr int kLaunchShift = 53;
constexpr uint64_t kBlockMask = 0xFFFFF;

constexpr uint64_t kBlocksTraced = 2;  // A launch's, whose reads are asked for their origin.

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  static Worker* current() { return running_worker; }

  // Takes blocks of the job until none are left or it failed.
  void run(Job* job);

  // Called by kernel code through the C interface.
  int barrier(int kind, int predicate, int line, uintptr_t pc);
  uint64_t warp_collective(int kind, uint32_t mask, uint64_t value, int argument, int width,
                           int line, uintptr_t pc);
  uint32_t active_mask(int kind, int line, uintptr_t pc);
  void grid_barrier(int line, uintptr_t pc);
  bool is_cooperative() const { return job_->launch->cooperative != 0; }
  void yield();
  void count_busy_access();
  void yield_randomly();
  char* dynamic_shared() const { return dynamic_; }
  size_t dynamic_shared_bytes() const { return job_->launch->shared_bytes; }

  // Asynchronous copies of the current thread (ptx_execute.cc).
  static constexpr uint32_t kEveryGroup = ~0u;
  void begin_copy(uintptr_t to, uintptr_t from, uint32_t size, uint32_t zeros, uintptr_t pc);
  void commit_copies();
  void wait_for_copies(uint32_t groups_left);

  // Gives each lane of a full warp `size` bytes of every lane.
  void gather(const void* own, size_t size, void* all, int line, uintptr_t pc);

  // Executes inline PTX; writes back the operands.
  void run_ptx(const char* text, McEmuPtxOperand* operands, int count, bool is_basic, int line,
               uintptr_t pc);

  // Addresses of shared memory as 32-bit code has them, and back; others stay as they are.
  uintptr_t shared_window_of(uintptr_t address) const;
  uintptr_t shared_address_of(uintptr_t window) const;

  bool is_stack(uintptr_t address) const {
    return address - stack_begin_ < stack_end_ - stack_begin_ || fibers_.is_stack(address);
  }

  // Called by instrumentation, before the access happens.
  [[gnu::always_inline]] void check_access(uintptr_t address, size_t size, uint16_t flags,
                                           uintptr_t pc);
  // Before an atomic that check_access() has seen.
  void note_atomic(uintptr_t address, McEmuAtomic kind);
  void note_fence(FenceScope scope);
  void note_volatile(uintptr_t address, bool is_write);

  // Reports and abandons the block.  REQUIRES: running a kernel.
  [[noreturn]] void fail(const char* kind, int error, uintptr_t pc, const char* detail);
  // The same for the fault handler: reports, and returns the stack pointer to continue at.
  void* fail_at_fault(uintptr_t address, bool is_write, uintptr_t pc);
  void* fail_at_division(uintptr_t pc);

 private:
  friend void fiber_main();

  // Blocks.
  void prepare(Job* job);
  void run_blocks();
  void run_block(uint64_t block_index);
  void run_cooperatively();
  void suspend_block(std::unique_ptr<Block>* saved);
  void resume_block(std::unique_ptr<Block>* saved);
  void enter_fibers();
  void begin_block(uint64_t block_index);
  void find_shared();
  void poison_shared();
  [[noreturn]] void abandon();

  // Threads.
  void run_new_threads();
  void finish_thread();
  void resume_next();
  bool pop_runnable(int* index);
  void wait(ThreadState state, int line, uintptr_t pc);
  void enter(int index);
  void refresh();
  void open_barrier();
  void begin_interval();
  void check_barrier_lines();

  // Warps.
  bool try_complete_warp(int thread);
  void complete_warp(int warp, LaneSet lanes);
  bool release_active_masks();
  [[noreturn]] void report_stuck();
  void report_stuck_grid(uint64_t num_finished);

  // Accesses.
  void check_other(uintptr_t address, size_t size, uint16_t flags, uintptr_t pc);
  [[gnu::always_inline]] void check_shared(size_t offset, size_t size, uint16_t flags,
                                           uintptr_t pc);
  [[gnu::always_inline]] void check_arena(uintptr_t address, size_t size, uint16_t flags,
                                          uintptr_t pc);
  bool is_kernels_own(uintptr_t address);
  void note_to_host(size_t size);
  void note_unknown_read(size_t size);
  WordPlace place_of(uintptr_t address) const;
  uint64_t* record_of(uintptr_t address);
  bool release(uintptr_t address, bool is_exchange);
  void mark_released(uintptr_t address, uint64_t* cell);
  void pause_for_others();
  bool is_race(uint64_t old, const uint64_t* cell, uint16_t flags);
  // `cell` is the record of the address.
  void check_global_race(uint64_t* cell, uintptr_t address, size_t size, uint16_t flags,
                         uintptr_t pc);
  [[noreturn, gnu::cold]] void fail_out_of_bounds(uintptr_t address, size_t size, bool is_write,
                                                  uintptr_t pc);
  [[noreturn, gnu::cold]] void fail_pinned(uintptr_t pc);
  void note_pending_write(const void* address, size_t size, const Finding& finding);
  void commit_pending_write();
  bool is_guard(size_t offset) const;
  void describe_shared(char* text, size_t capacity, size_t offset) const;
  void check_shared_fully(size_t offset, size_t size, uint16_t flags, uintptr_t pc);
  void report_shared(const Conflict& conflict, size_t offset, size_t size, uintptr_t pc);
  Finding finding(const char* kind, uintptr_t pc) const;

  // Constant during a launch.
  Job* job_ = nullptr;
  bool has_checks_ = true;
  bool reads_given_ = false;  // True if a block that is traced read inputs or parameters.
  int num_threads_ = 0;
  ArenaView arena_;
  uintptr_t static_begin_ = 0;
  size_t static_bytes_ = 0;
  bool static_is_isolated_ = false;  // Nothing else lies close to it.
  uintptr_t dynamic_begin_ = 0;
  uintptr_t data_begin_ = 0, data_end_ = 0;  // Variables of the module, and records of them.
  uint64_t* data_shadow_ = nullptr;
  uintptr_t stack_begin_ = 0, stack_end_ = 0;  // This OS thread's stack, with its own variables.
  uintptr_t image_begin_ = 0, image_end_ = 0;  // The loaded file that was used last.
  char* dynamic_ = nullptr;
  char* dynamic_pages_ = nullptr;
  std::array<uint16_t, kThreadsMax> order_;
  std::array<Coordinates, kThreadsMax> coordinates_;
  Coordinates shape_;  // The shape of a block, that coordinates_ was made for.

  Block block_;
  uint64_t record_ = 0;  // The record of the current thread, without bytes.
  int current_ = 0;
  Fiber* current_fiber_ = nullptr;
  void* home_ = nullptr;  // The stack pointer to return to when the block is over or suspended.
  FiberPool fibers_;
  WriteSuspect pending_write_;
  std::array<std::vector<unsigned char>, kWarpsMax> gathered_;
};

// --- The hot paths.

inline void Worker::check_access(uintptr_t address, size_t size, uint16_t flags, uintptr_t pc) {
  if (pending_write_.is_active) [[unlikely]]
    commit_pending_write();
  if ((flags & kAtomic) == 0) block_.order.note_access();
  if (address - arena_.base < arena_.bytes) {
    check_arena(address, size, flags, pc);
  } else if (const size_t offset = address - static_begin_; offset < static_bytes_) {
    if (size > static_bytes_ - offset) [[unlikely]] {
      fail_out_of_bounds(address, size, (flags & kWrite) != 0, pc);
    }
    check_shared(offset, size, flags, pc);
  } else {
    check_other(address, size, flags, pc);
  }
}

inline void Worker::check_shared(size_t offset, size_t size, uint16_t flags, uintptr_t pc) {
  if (!has_checks_) return;
  if (size == 4 && offset % 4 == 0 && (flags & ~kWrite) == 0 &&
      block_.checker.record_quickly(offset, flags != 0, static_cast<uint32_t>(pc))) {
    return;
  }
  check_shared_fully(offset, size, flags, pc);
}

inline void Worker::check_arena(uintptr_t address, size_t size, uint16_t flags, uintptr_t pc) {
  Allocation* allocation = arena_.find(address);
  if (address < allocation->begin || address + size > allocation->end) [[unlikely]] {
    fail_out_of_bounds(address, size, (flags & kWrite) != 0, pc);
  }
  if (allocation->is_pinned && (flags & kWrite) == 0) [[unlikely]]
    fail_pinned(pc);
  if ((flags & kWrite) != 0) {
    std::memset(arena_.origin_of(address), static_cast<int>(Origin::kKernel), size);
    if (allocation->is_host_visible) [[unlikely]]
      note_to_host(size);
  } else if (block_.index < kBlocksTraced) {
    const Origin origin = *arena_.origin_of(address);
    reads_given_ |= origin == Origin::kGiven;
    if (origin == Origin::kNowhere) [[unlikely]]
      note_unknown_read(size);
  }
  if (!has_checks_ || (flags & kAtomic) != 0) return;
  const bool is_fresh = allocation->written_in.load(std::memory_order_relaxed) == job_->number;
  if ((flags & kWrite) == 0) {
    if (is_fresh) check_global_race(arena_.shadow_of(address), address, size, flags, pc);
    return;
  }
  if (!is_fresh) allocation->written_in.store(job_->number, std::memory_order_relaxed);
  if (size != 4 || address % 4 != 0) {
    check_global_race(arena_.shadow_of(address), address, size, flags, pc);
    return;
  }
  // The usual store: a whole word that nobody wrote in this launch.
  uint64_t* cell = arena_.shadow_of(address);
  if (*cell >> kLaunchShift == record_ >> kLaunchShift) {
    check_global_race(cell, address, size, flags, pc);
  } else {
    *cell = record_ | uint64_t{15} << kBytesShift;
  }
}

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_WORKER_H_
