// SPDX-License-Identifier: Apache-2.0
// The C interface of mc_emu/abi.h over Runtime and Worker.
#include "mc_emu/abi.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mc_emu/errors.h"
#include "runtime/mc_emu.h"
#include "runtime/runtime.h"

using mc::emu::Runtime;
using mc::emu::Worker;

namespace {

uintptr_t address_of(const volatile void* p) { return reinterpret_cast<uintptr_t>(p); }

void* copy_checked(void* to, const void* from, size_t size, uintptr_t pc) {
  if (Worker* worker = Worker::current(); worker != nullptr && size != 0) {
    worker->check_access(address_of(from), size, 0, pc);
    worker->check_access(address_of(to), size, mc::emu::kWrite, pc);
  }
  return std::memmove(to, from, size);
}

// Device-only functions called from host code: the program is wrong in a way that nvcc would
// refuse.
[[noreturn]] void refuse_host(const char* name) {
  std::fprintf(stderr, "%s was called outside a kernel\n", name);
  std::abort();
}

}  // namespace

#define MC_RETURN_ADDRESS reinterpret_cast<uintptr_t>(__builtin_return_address(0))

#pragma GCC visibility push(default)
extern "C" {
void* __wrap_memcpy(void* to, const void* from, size_t size);
void* __wrap_memmove(void* to, const void* from, size_t size);
void* __wrap_memset(void* to, int value, size_t size);
}
#pragma GCC visibility pop

extern "C" {

int mc_emu_launch(const McEmuLaunch* launch) { return Runtime::get().launch(*launch); }

int mc_emu_barrier(int kind, int predicate, int line) {
  Worker* worker = Worker::current();
  if (worker == nullptr) refuse_host("__syncthreads");
  return worker->barrier(kind, predicate, line, MC_RETURN_ADDRESS);
}

uint64_t mc_emu_warp(int kind, uint32_t mask, uint64_t value, int argument, int width, int line) {
  Worker* worker = Worker::current();
  if (worker == nullptr) refuse_host("a warp operation");
  return worker->warp_collective(kind, mask, value, argument, width, line, MC_RETURN_ADDRESS);
}

uint32_t mc_emu_active_mask(int kind, int line) {
  Worker* worker = Worker::current();
  if (worker == nullptr) refuse_host("__activemask");
  return worker->active_mask(kind, line, MC_RETURN_ADDRESS);
}

void mc_emu_grid_barrier(int line) {
  Worker* worker = Worker::current();
  if (worker == nullptr) refuse_host("a grid barrier");
  worker->grid_barrier(line, MC_RETURN_ADDRESS);
}

int mc_emu_is_cooperative(void) {
  Worker* worker = Worker::current();
  return worker != nullptr && worker->is_cooperative();
}

void* mc_emu_dynamic_shared(void) {
  Worker* worker = Worker::current();
  return worker == nullptr ? nullptr : worker->dynamic_shared();
}

size_t mc_emu_dynamic_shared_bytes(void) {
  Worker* worker = Worker::current();
  return worker == nullptr ? 0 : worker->dynamic_shared_bytes();
}

void mc_emu_atomic(const volatile void* address, size_t size, int kind) {
  Worker* worker = Worker::current();
  if (worker == nullptr) return;
  const bool is_load = kind == kMcEmuAtomicLoad;
  worker->yield_randomly();
  worker->check_access(address_of(address), size,
                       (is_load ? 0 : mc::emu::kWrite) | mc::emu::kAtomic, MC_RETURN_ADDRESS);
  worker->count_busy_access();
  worker->note_atomic(address_of(address), static_cast<McEmuAtomic>(kind));
}

void mc_emu_access(const volatile void* address, size_t size, int is_write) {
  Worker* worker = Worker::current();
  if (worker == nullptr || size == 0) return;
  worker->check_access(address_of(address), size, is_write != 0 ? mc::emu::kWrite : 0,
                       MC_RETURN_ADDRESS);
}

void mc_emu_ptx(const char* text, McEmuPtxOperand* operands, int count, int is_basic, int line) {
  Worker* worker = Worker::current();
  if (worker == nullptr) refuse_host("inline PTX");
  if (mc::emu::warp_size() != 32) mc_emu_unsupported("inline PTX in warps of 128 threads");
  worker->run_ptx(text, operands, count, is_basic != 0, line, MC_RETURN_ADDRESS);
}

void mc_emu_copy_begin(void* to, const void* from, uint32_t size, uint32_t zeros) {
  Worker* worker = Worker::current();
  if (worker == nullptr) refuse_host("an asynchronous copy");
  worker->begin_copy(address_of(to), address_of(from), size, zeros, MC_RETURN_ADDRESS);
}

void mc_emu_copy_commit(void) {
  if (Worker* worker = Worker::current()) worker->commit_copies();
}

void mc_emu_copy_wait(uint32_t groups_left) {
  if (Worker* worker = Worker::current()) worker->wait_for_copies(groups_left);
}

void mc_emu_gather(const void* own, size_t size, void* all, int line) {
  Worker* worker = Worker::current();
  if (worker == nullptr) refuse_host("a warp operation");
  worker->gather(own, size, all, line, MC_RETURN_ADDRESS);
}

size_t mc_emu_shared_window(const void* address) {
  const Worker* worker = Worker::current();
  return worker == nullptr ? address_of(address) : worker->shared_window_of(address_of(address));
}

void* mc_emu_shared_address(size_t window) {
  const Worker* worker = Worker::current();
  return reinterpret_cast<void*>(worker == nullptr ? window : worker->shared_address_of(window));
}

int mc_emu_space(const void* address) {
  const Worker* worker = Worker::current();
  if (Runtime::get().arena().contains(address_of(address))) return kMcEmuGlobal;
  if (worker == nullptr) return kMcEmuLocal;
  if (worker->shared_window_of(address_of(address)) != address_of(address)) return kMcEmuShared;
  return worker->is_stack(address_of(address)) ? kMcEmuLocal : kMcEmuConstant;
}

void mc_emu_fence(void) {
  if (Worker* worker = Worker::current()) worker->note_fence(mc::emu::FenceScope::kDevice);
}

void mc_emu_fence_block(void) {
  if (Worker* worker = Worker::current()) worker->note_fence(mc::emu::FenceScope::kBlock);
}

void mc_emu_pause(void) {
  if (Worker* worker = Worker::current()) worker->yield();
}

void mc_emu_assert_fail(const char* expression, const char* file, int line) {
  char detail[300];
  std::snprintf(detail, sizeof detail, "assertion `%.160s' failed at %.80s:%d", expression, file,
                line);
  if (Worker* worker = Worker::current()) {
    worker->fail("device_assert", cudaErrorAssert, MC_RETURN_ADDRESS, detail);
  }
  std::fprintf(stderr, "%s\n", detail);
  std::abort();
}

void mc_emu_trap(void) {
  if (Worker* worker = Worker::current()) {
    worker->fail("device_assert", cudaErrorLaunchFailure, MC_RETURN_ADDRESS, "__trap()");
  }
  std::abort();
}

void mc_emu_break_launch_bounds(uint64_t threads_max) {
  char detail[160];
  std::snprintf(detail, sizeof detail,
                "a block has more threads than the kernel's __launch_bounds__ allow: at most %zu",
                static_cast<size_t>(threads_max));
  if (Worker* worker = Worker::current()) {
    worker->fail("launch_error", cudaErrorLaunchOutOfResources, MC_RETURN_ADDRESS, detail);
  }
}

void mc_emu_unsupported(const char* construct) {
  if (Worker* worker = Worker::current()) {
    worker->fail("unsupported", cudaErrorNotSupported, MC_RETURN_ADDRESS, construct);
  }
  mc_emu_report_unsupported(construct);
}

// The C library's functions in a candidate, by the linker's --wrap: their accesses are checked.
void* __wrap_memcpy(void* to, const void* from, size_t size) {
  return copy_checked(to, from, size, MC_RETURN_ADDRESS);
}
void* __wrap_memmove(void* to, const void* from, size_t size) {
  return copy_checked(to, from, size, MC_RETURN_ADDRESS);
}
void* __wrap_memset(void* to, int value, size_t size) {
  if (Worker* worker = Worker::current(); worker != nullptr && size != 0) {
    worker->check_access(address_of(to), size, mc::emu::kWrite, MC_RETURN_ADDRESS);
  }
  return std::memset(to, value, size);
}

int mc_emu_in_kernel(void) { return Worker::current() != nullptr; }

uint64_t mc_emu_clock(void) { return __builtin_ia32_rdtsc(); }

uint64_t mc_emu_nanoseconds(void) {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // extern "C"
