// SPDX-License-Identifier: Apache-2.0
// Accesses to shared and device memory, as instrumented code reports them.
//
// Device memory has one 64-bit record for each four bytes, of the last write in this launch that
// was not atomic: launch number, bytes, block, thread and step (order.h).  A write of other bytes
// by another thread, or a read, is a race where neither a barrier of the block, nor a warp
// synchronisation, nor a word through which the two synchronised is between.
//
// A word that was written as a release (an atomic or volatile write behind a fence), or exchanged,
// is marked as `released` in its record.  Reading it is no race, and writing it is none for those
// who have read what is there: so a turn may be passed on.  Two blocks that read and write such a
// word without waiting for each other lose updates; to show that, a block pauses now and then
// between.
#include <link.h>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "mc_emu/errors.h"
#include "runtime/coordinates.h"
#include "runtime/runtime.h"
#include "runtime/worker.h"

namespace mc::emu {
namespace {

constexpr size_t kNearby = 1024;  // Bytes around static shared memory that nothing else may touch.
constexpr int kPausesMax = 2;     // In one block.
constexpr uint32_t kPausesOfLaunchMax = 64;
constexpr auto kPause = std::chrono::microseconds(200);
// The writer of a word that only atomics wrote: no thread of any block.
constexpr uint64_t kNobody = kBlockMask << kBlockShift | uint64_t{1023} << kThreadShift;

uint32_t record_step(uint64_t r) { return r & kStepMax; }
int record_thread(uint64_t r) { return static_cast<int>(r >> kThreadShift & 1023); }
uint64_t record_block(uint64_t r) { return r >> kBlockShift & kBlockMask; }
uint64_t record_bytes(uint64_t r) { return r >> kBytesShift & 15; }
uint64_t record_launch(uint64_t r) { return r >> kLaunchShift; }

const char* describe(Conflict::Kind kind) {
  switch (kind) {
    case Conflict::kReadAfterWrite:
      return "reads what another thread wrote";
    case Conflict::kWriteAfterWrite:
      return "writes what another thread wrote";
    case Conflict::kWriteAfterRead:
      return "writes what another thread read";
    default:
      return "reads what no thread of the block has written";
  }
}

[[gnu::format(printf, 2, 3)]] void set_detail(Finding* finding, const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::vsnprintf(finding->detail, sizeof finding->detail, format, list);
  va_end(list);
}

// The loaded file whose segments hold the address.
bool find_image(uintptr_t address, uintptr_t* begin, uintptr_t* end) {
  struct Search {
    uintptr_t address, begin = 0, end = 0;
  } search{address};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& wanted = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          const uintptr_t start = info->dlpi_addr + header.p_vaddr;
          if (header.p_type != PT_LOAD || wanted.address - start >= header.p_memsz) continue;
          wanted.begin = start;
          wanted.end = start + header.p_memsz;
          return 1;
        }
        return 0;
      },
      &search);
  if (search.end != 0) *begin = search.begin, *end = search.end;
  return search.end != 0;
}

// The address near `pc` with the given low half.
uintptr_t widen(uintptr_t pc, uint32_t low) { return pc - static_cast<uint32_t>(pc) + low; }

}  // namespace

// Dynamic shared memory, what lies around shared memory, and everything that is nobody's business.
void Worker::check_other(uintptr_t address, size_t size, uint16_t flags, uintptr_t pc) {
  if (address - reinterpret_cast<uintptr_t>(dynamic_pages_) < kDynamicPagesBytes) {
    const size_t offset = address - dynamic_begin_;
    const size_t bytes = job_->launch->shared_bytes;
    if (offset >= bytes || size > bytes - offset) {
      fail_out_of_bounds(address, size, (flags & kWrite) != 0, pc);
    }
    check_shared(static_bytes_ + offset, size, flags, pc);
  } else if (static_is_isolated_ && (address - static_begin_ - static_bytes_ < kNearby ||
                                     static_begin_ - address <= kNearby)) {
    fail_out_of_bounds(address, size, (flags & kWrite) != 0, pc);
  } else if (address - data_begin_ < data_end_ - data_begin_) {
    if (!has_checks_ || (flags & kAtomic) != 0) return;
    check_global_race(data_shadow_ + (address - data_begin_) / 4, address, size, flags, pc);
  } else if (address - reinterpret_cast<uintptr_t>(current_fiber_->stack) >= kStackBytes &&
             !is_kernels_own(address)) {
    if (Runtime::get().is_registered(address)) fail_pinned(pc);
    char detail[128];
    std::snprintf(detail, sizeof detail,
                  "%zu-byte access to host memory: a kernel can only use device memory", size);
    const bool is_write = (flags & kWrite) != 0;
    fail(is_write ? "out_of_bounds_write" : "out_of_bounds_read", cudaErrorIllegalAddress, pc,
         detail);
  }
}

// Memory that is neither the device's nor shared: stacks, parameters, and variables and constants
// of loaded files.  Everything else is the host's.
bool Worker::is_kernels_own(uintptr_t address) {
  if (address - image_begin_ < image_end_ - image_begin_) return true;
  if (address - stack_begin_ < stack_end_ - stack_begin_) return true;
  const McEmuLaunch& launch = *job_->launch;
  if (address - reinterpret_cast<uintptr_t>(launch.arguments) < launch.arguments_bytes) return true;
  if (fibers_.is_stack(address)) return true;
  return find_image(address, &image_begin_, &image_end_);
}

// --- Synchronisation.

WordPlace Worker::place_of(uintptr_t address) const {
  const bool is_shared = address - static_begin_ < static_bytes_ ||
                         address - reinterpret_cast<uintptr_t>(dynamic_pages_) < kDynamicPagesBytes;
  return is_shared ? WordPlace::kShared : WordPlace::kDevice;
}

// The record of a word of device memory, or null.
uint64_t* Worker::record_of(uintptr_t address) {
  if (address - arena_.base < arena_.bytes) return arena_.shadow_of(address);
  if (address - data_begin_ >= data_end_ - data_begin_) return nullptr;
  return data_shadow_ + (address - data_begin_) / 4;
}

void Worker::note_fence(FenceScope scope) {
  block_.order.fence(current_, scope);
  refresh();
}

void Worker::note_atomic(uintptr_t address, McEmuAtomic kind) {
  if (!has_checks_) return;
  uint64_t* cell = record_of(address);
  if (kind != kMcEmuAtomicLoad) {
    const bool is_exchange = kind == kMcEmuAtomicExchange;
    if (block_.order.has_release(current_)) pause_for_others();
    // A word that is exchanged may be a lock, which a plain store may open.
    if (release(address, is_exchange) || is_exchange) mark_released(address, cell);
  }
  block_.order.acquire(current_, address, cell);
}

void Worker::note_volatile(uintptr_t address, bool is_write) {
  if (!has_checks_) return;
  uint64_t* cell = record_of(address);
  if (!is_write) {
    block_.order.acquire(current_, address, cell);
    return;
  }
  const bool is_marked =
      cell != nullptr && record_launch(*cell) == job_->number && (*cell & kReleased) != 0;
  if (is_marked || block_.order.has_release(current_)) pause_for_others();
  if (release(address, false)) mark_released(address, cell);
}

// The thread is about to write a word that others may wait for; false where that tells them
// nothing.
bool Worker::release(uintptr_t address, bool is_exchange) {
  if (!block_.order.release(current_, address, place_of(address), is_exchange)) return false;
  refresh();
  return true;
}

void Worker::mark_released(uintptr_t address, uint64_t* cell) {
  if (cell == nullptr) return;
  const uint64_t nobody = kNobody | static_cast<uint64_t>(job_->number) << kLaunchShift;
  // The record of a plain store that opens the lock meanwhile must not be lost.
  uint64_t old = __atomic_load_n(cell, __ATOMIC_RELAXED);
  uint64_t marked = 0;
  do {
    marked = (record_launch(old) == job_->number ? old : nobody) | kReleased;
  } while (old != marked && !__atomic_compare_exchange_n(cell, &old, marked, true, __ATOMIC_RELAXED,
                                                         __ATOMIC_RELAXED));
  if (arena_.contains(address)) {
    arena_.find(address)->written_in.store(job_->number, std::memory_order_relaxed);
  }
}

// Blocks that only seem to wait for each other are shown to do so by chance: others get a turn
// between what a block read and what it writes.
void Worker::pause_for_others() {
  block_.order.settle(current_);
  yield_randomly();
  if (block_.num_paused == kPausesMax || is_cooperative() || job_->num_workers < 2) return;
  if (job_->num_pauses.fetch_add(1, std::memory_order_relaxed) >= kPausesOfLaunchMax) return;
  ++block_.num_paused;
  const uint64_t wanted = job_->num_begun.load(std::memory_order_relaxed) + 2;
  const auto end = std::chrono::steady_clock::now() + kPause;
  while (job_->num_begun.load(std::memory_order_relaxed) < wanted &&
         std::chrono::steady_clock::now() < end) {
    sched_yield();
  }
}

// --- Shared memory.

void Worker::check_shared_fully(size_t offset, size_t size, uint16_t flags, uintptr_t pc) {
  const Conflict conflict = block_.checker.access(offset, size, flags, static_cast<uint32_t>(pc));
  if (conflict.kind != Conflict::kNone) [[unlikely]]
    report_shared(conflict, offset, size, pc);
}

void Worker::report_shared(const Conflict& conflict, size_t offset, size_t size, uintptr_t pc) {
  if (is_guard(offset)) return;
  const bool is_race = conflict.kind != Conflict::kUninitialised;
  Finding f = finding(is_race ? "shared_race" : "uninitialised_shared", pc);
  char place[192];
  describe_shared(place, sizeof place, offset);
  if (is_race) {
    const Coordinates c = coordinates_[conflict.other.thread()];
    if (conflict.other_pc != 0) f.other_pc = widen(pc, conflict.other_pc) - 1;
    set_detail(&f, "%s: %s, thread (%u,%u,%u), with no barrier between", place,
               describe(conflict.kind), c.x, c.y, c.z);
  } else {
    set_detail(&f, "%s: %s", place, describe(conflict.kind));
  }
  const bool may_be_harmless =
      conflict.kind == Conflict::kWriteAfterWrite || conflict.kind == Conflict::kWriteAfterRead;
  if (!may_be_harmless) {
    Runtime::get().report().add(f);
    return;
  }
  const uintptr_t address =
      offset < static_bytes_ ? static_begin_ + offset : dynamic_begin_ + (offset - static_bytes_);
  note_pending_write(reinterpret_cast<const void*>(address), size, f);
}

bool Worker::is_guard(size_t offset) const {
  if (offset >= static_bytes_) return false;
  const SharedArray* array = job_->module->array_at(offset);
  return array != nullptr && array->is_guard;
}

void Worker::describe_shared(char* text, size_t capacity, size_t offset) const {
  if (offset >= static_bytes_) {
    std::snprintf(text, capacity, "dynamic shared memory, byte %zu of %zu", offset - static_bytes_,
                  job_->launch->shared_bytes);
    return;
  }
  const SharedArray* array = job_->module->array_at(offset);
  if (array == nullptr) {
    std::snprintf(text, capacity, "static shared memory, byte %zu", offset);
  } else {
    std::snprintf(text, capacity, "shared array '%.100s', byte %zu of %zu", array->name.c_str(),
                  offset - array->offset, array->size);
  }
}

// A store is about to happen; whether it changes anything is seen later.
void Worker::note_pending_write(const void* address, size_t size, const Finding& finding) {
  pending_write_.is_active = true;
  pending_write_.address = static_cast<const unsigned char*>(address);
  pending_write_.size = std::min(size, sizeof pending_write_.before);
  std::memcpy(pending_write_.before, address, pending_write_.size);
  pending_write_.finding = finding;
}

void Worker::commit_pending_write() {
  if (!pending_write_.is_active) return;
  pending_write_.is_active = false;
  if (std::memcmp(pending_write_.before, pending_write_.address, pending_write_.size) != 0) {
    Runtime::get().report().add(pending_write_.finding);
  }
}

// --- Device memory.

void Worker::note_unknown_read(size_t size) { Runtime::get().call().note_unknown_read(size); }

void Worker::note_to_host(size_t size) { Runtime::get().call().note_to_host(size); }

// True when an access conflicts with the write of another thread, of the same launch, that the
// record tells of.
bool Worker::is_race(uint64_t old, const uint64_t* cell, uint16_t flags) {
  BlockOrder& order = block_.order;
  const bool is_write = (flags & kWrite) != 0;
  const uint32_t step = record_step(old);
  const uint64_t block = record_block(old);
  const bool same_block = block == order.block();
  if (same_block && (step < order.barrier_step() || step == kStepMax)) return false;
  const int warp = warp_of(current_);
  if (same_block && warp_of(record_thread(old)) == warp && order.has_met(warp)) return false;
  if ((old & kReleased) != 0) {
    if (!is_write || record_thread(old) == record_thread(kNobody)) return false;
    order.settle(current_);
    if (order.has_seen(cell, old)) return false;
  }
  if ((flags & kVolatile) != 0 && !is_write && !same_block) {
    order.learn(current_, block, record_thread(old), step);
    return false;
  }
  return !order.is_ordered(current_, block, record_thread(old), step);
}

void Worker::check_global_race(uint64_t* cell, uintptr_t address, size_t size, uint16_t flags,
                               uintptr_t pc) {
  const bool is_write = (flags & kWrite) != 0;
  // A plain access of a word that somebody releases is meant as a volatile one.
  if ((flags & kVolatile) == 0 && (*cell & kReleased) != 0 &&
      record_launch(*cell) == job_->number) {
    note_volatile(address, is_write);
  }
  size_t lead = address % 4;
  for (size_t done = 0; done < size; ++cell, lead = 0) {
    const size_t here = std::min(size - done, 4 - lead);
    done += here;
    const uint64_t bytes = ((uint64_t{1} << here) - 1) << lead;
    const uint64_t old = *cell;
    uint64_t mine = record_ | bytes << kBytesShift;
    const bool same_launch = record_launch(old) == record_launch(mine);
    const bool same_thread =
        same_launch && record_block(old) == record_block(mine) && record_thread(old) == current_;
    if (same_thread) mine |= record_bytes(old) << kBytesShift;
    if (same_launch) mine |= old & kReleased;
    if (is_write) *cell = mine;
    if (!same_launch || same_thread || (record_bytes(old) & bytes) == 0) continue;
    if (!is_race(old, cell, flags)) continue;
    Finding f = finding("global_race", pc);
    const Coordinates c = coordinates_[record_thread(old)];
    char place[64] = "a variable of the module";
    if (arena_.contains(address)) {
      const Allocation* allocation = arena_.find(address);
      std::snprintf(place, sizeof place, "byte %zu of a buffer of %zu",
                    static_cast<size_t>(address - allocation->begin),
                    static_cast<size_t>(allocation->end - allocation->begin));
    }
    set_detail(&f, "%s in the same launch: %s, block %zu, thread (%u,%u,%u)",
               describe(is_write ? Conflict::kWriteAfterWrite : Conflict::kReadAfterWrite), place,
               static_cast<size_t>(record_block(old)), c.x, c.y, c.z);
    if (is_write) {
      note_pending_write(reinterpret_cast<const void*>(address), size, f);
    } else {
      Runtime::get().report().add(f);
    }
  }
}

// --- Fatal findings.

Finding Worker::finding(const char* kind, uintptr_t pc) const {
  Finding f;
  f.kind = kind;
  f.kernel = job_->launch->kernel;
  f.pc = pc == 0 ? 0 : pc - 1;  // Inside the call, not after it.
  const Coordinates b = mc_emu_block_index;
  const Coordinates t = coordinates_[current_];
  f.block[0] = b.x, f.block[1] = b.y, f.block[2] = b.z;
  f.thread[0] = t.x, f.thread[1] = t.y, f.thread[2] = t.z;
  return f;
}

void Worker::fail(const char* kind, int error, uintptr_t pc, const char* detail) {
  Finding f = finding(kind, pc);
  set_detail(&f, "%s", detail);
  Runtime::get().report().add(f);
  job_->error.store(error);
  abandon();
}

namespace {

// Says how an address misses the memory nearest to it.
void describe_miss(const Allocation& allocation, uintptr_t address, size_t size, char* text,
                   size_t capacity) {
  const size_t bytes = allocation.end - allocation.begin;
  if (allocation.begin == 0) {
    std::snprintf(text, capacity, "%zu-byte access to device memory that is not allocated", size);
  } else if (address < allocation.begin) {
    std::snprintf(text, capacity, "%zu-byte access %zu bytes before a buffer of %zu bytes", size,
                  static_cast<size_t>(allocation.begin - address), bytes);
  } else {
    std::snprintf(text, capacity, "%zu-byte access at byte %zu of a buffer of %zu bytes", size,
                  static_cast<size_t>(address - allocation.begin), bytes);
  }
}

}  // namespace

void Worker::fail_out_of_bounds(uintptr_t address, size_t size, bool is_write, uintptr_t pc) {
  char detail[256];
  Runtime& runtime = Runtime::get();
  if (runtime.arena().contains(address)) {
    describe_miss(*runtime.arena().find(address), address, size, detail, sizeof detail);
  } else if (address - reinterpret_cast<uintptr_t>(dynamic_pages_) < kDynamicPagesBytes) {
    std::snprintf(detail, sizeof detail,
                  "%zu-byte access at byte %td of dynamic shared memory of %zu bytes", size,
                  static_cast<ptrdiff_t>(address - dynamic_begin_), job_->launch->shared_bytes);
  } else {
    char place[192] = "";
    describe_shared(place, sizeof place, std::min(address - static_begin_, static_bytes_ - 1));
    std::snprintf(detail, sizeof detail,
                  "%zu-byte access outside static shared memory; nearest: %s", size, place);
  }
  fail(is_write ? "out_of_bounds_write" : "out_of_bounds_read", cudaErrorIllegalAddress, pc,
       detail);
}

// Bytes that a kernel writes there are counted as copied to the host.  Bytes that it reads there
// were written by the host, with no copy that could be counted.
void Worker::fail_pinned(uintptr_t pc) {
  fail("unsupported", cudaErrorNotSupported, pc, "a kernel that reads mapped host memory");
}

void* Worker::fail_at_fault(uintptr_t address, bool is_write, uintptr_t pc) {
  Finding f = finding(is_write ? "out_of_bounds_write" : "out_of_bounds_read", pc + 1);
  Runtime& runtime = Runtime::get();
  if (runtime.arena().contains(address)) {
    describe_miss(*runtime.arena().find(address), address, 1, f.detail, sizeof f.detail);
  } else if (fibers_.is_stack_guard(address)) {
    set_detail(&f, "the stack of a thread overflowed (%zu bytes)", kStackBytes);
  } else {
    set_detail(&f, "access to address 0x%zx, which is no memory", static_cast<size_t>(address));
  }
  runtime.report().add(f);
  job_->error.store(cudaErrorIllegalAddress);
  pending_write_.is_active = false;
  fibers_.abandon_all();
  return home_;
}

void* Worker::fail_at_division(uintptr_t pc) {
  Finding f = finding("device_assert", pc + 1);
  set_detail(&f, "integer division by zero or overflow of a quotient");
  Runtime::get().report().add(f);
  job_->error.store(cudaErrorLaunchFailure);
  pending_write_.is_active = false;
  fibers_.abandon_all();
  return home_;
}

}  // namespace mc::emu
