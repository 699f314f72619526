// SPDX-License-Identifier: Apache-2.0
//
// The executor as C functions, for python/harness/device/process.py.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "check.h"
#include "cuda/executor.h"

using mc::device::CallItem;
using mc::device::Executor;
using mc::device::Stopwatch;
using mc::device::Use;

namespace {

struct Process {
  std::unique_ptr<Executor> executor;
  std::thread thread;
  std::atomic<bool> is_over{false};
};

// CallItem; the numbers are grid, block, registers, shared bytes, launches.
struct PlainItem {
  char name[1024];
  char owner[512];
  uint32_t numbers[9];
  double us;
};
// The sizes of _Item and _TimedCall there.
static_assert(sizeof(PlainItem) == 1584 && sizeof(Executor::TimedCall) == 32);

Process& process_at(void* process) {
  MC_CHECK(process != nullptr);
  return *static_cast<Process*>(process);
}

Executor& executor_of(void* process) { return *process_at(process).executor; }

Stopwatch& stopwatch_at(void* watch) {
  MC_CHECK(watch != nullptr);
  return *static_cast<Stopwatch*>(watch);
}

void copy_text(const std::string& text, char* target, size_t bytes) {
  if (bytes == 0) return;
  const size_t taken = std::min(bytes - 1, text.size());
  std::memcpy(target, text.data(), taken);
  target[taken] = 0;
}

}  // namespace

extern "C" {

// Creates a process's executor; null if the driver fails, with the reason in `why`.
void* mc_executor_create(uint64_t memory_bytes_max, char* why, size_t why_bytes) {
  auto process = std::make_unique<Process>();
  std::string reason;
  Executor::Options options;
  if (memory_bytes_max > 0) options.memory_bytes_max = memory_bytes_max;
  process->executor = Executor::create(options, reason);
  copy_text(reason, why, why_bytes);
  return process->executor == nullptr ? nullptr : process.release();
}

// Bytes of a channel's shared memory.
uint64_t mc_executor_channel_bytes() { return mc::device::kChannelBytes; }

int mc_executor_attach(void* process, int descriptor) {
  return executor_of(process).attach(descriptor) ? 0 : 1;
}

void mc_executor_allow_file(void* process, const char* path_there, const char* path_here,
                            int is_own) {
  executor_of(process).allow_file(path_there, path_here, is_own != 0);
}

void mc_executor_allow_foreign_kernels(void* process, const char* pattern) {
  executor_of(process).allow_foreign_kernels(pattern);
}

// Serves the channel in a thread until mc_executor_detach().
void mc_executor_serve(void* process) {
  Process& p = process_at(process);
  MC_CHECK(!p.thread.joinable());
  p.is_over = false;
  p.thread = std::thread([&p] { p.executor->serve(p.is_over); });
}

// Executor::set_operators.
void mc_executor_set_operators(void* process, decltype(Executor::Operators::run) run,
                               decltype(Executor::Operators::fetch) fetch,
                               decltype(Executor::Operators::end) end) {
  executor_of(process).set_operators({run, fetch, end});
}

// Executor::record and is_recorded.
void mc_executor_record(void* process, int descriptor) { executor_of(process).record(descriptor); }
int mc_executor_is_recorded(void* process) { return executor_of(process).is_recorded() ? 1 : 0; }
// The addresses of the candidate's memory and of its inputs, the compute capability, such as 90,
// and the device's name.
void mc_executor_facts(void* process, uint64_t* facts, char* name, size_t name_bytes) {
  const Executor& executor = executor_of(process);
  facts[0] = executor.arena();
  facts[1] = executor.regions();
  facts[2] = executor.capability();
  copy_text(executor.name(), name, name_bytes);
}

// Executor::run_alone: the status, or -1 if there is no such command.  At most `reply_max` bytes of
// a reply go to `reply`, and `is_reply` becomes 1 if there was one.
int mc_executor_run_alone(void* process, uint32_t op, const char* body, uint32_t bytes,
                          int* is_reply, char* reply, size_t reply_max) {
  Executor::Outcome outcome;
  auto& executor = executor_of(process);
  if (!executor.run_alone(static_cast<mc::device::Op>(op), body, bytes, outcome)) return -1;
  *is_reply = outcome.is_reply ? 1 : 0;
  std::memcpy(reply, outcome.reply.data(), std::min(reply_max, outcome.reply.size()));
  return static_cast<int>(outcome.status);
}

// Executor::read_bytes: 0 where they were read.
int mc_executor_read(void* process, uint64_t address, uint64_t bytes, void* target) {
  return executor_of(process).read_bytes(address, bytes, target) ? 0 : 1;
}

// Executor::place_region.
uint64_t mc_executor_place(void* process, int descriptor, uint64_t bytes,
                           const Executor::Extent* extents, size_t num_extents) {
  return executor_of(process).place_region(descriptor, bytes, {extents, num_extents});
}

// Executor::import_region.
uint64_t mc_executor_import(void* process, int descriptor, uint64_t bytes,
                            const Executor::Extent* extents, size_t num_extents) {
  return executor_of(process).import_region(descriptor, bytes, {extents, num_extents});
}

// Executor::pause and resume, by the same thread.
void mc_executor_pause(void* process) { executor_of(process).pause(); }
void mc_executor_resume(void* process) { executor_of(process).resume(); }

void mc_executor_release(void* process, uint64_t address) {
  executor_of(process).release_region(address);
}

int mc_executor_export(void* process, const Executor::Part* parts, size_t num_parts,
                       uint64_t bytes) {
  return executor_of(process).export_parts(parts, num_parts, bytes);
}

// Executor::prepare_batches, start_batch, finish_batch and export_outputs.
uint64_t mc_executor_prepare_batches(void* process, uint32_t calls, uint64_t inputs_bytes,
                                     uint64_t outputs_bytes) {
  return executor_of(process).prepare_batches(calls, {inputs_bytes, outputs_bytes});
}

int mc_executor_start_batch(void* process, int descriptor, uint64_t bytes, uint32_t calls,
                            uint32_t kind) {
  MC_CHECK(kind <= static_cast<uint32_t>(Executor::BatchKind::kItemised));
  auto& executor = executor_of(process);
  return executor.start_batch(descriptor, bytes, calls, static_cast<Executor::BatchKind>(kind)) ? 0
                                                                                                : 1;
}

// Returns the number of calls, of which at most `calls_max` are copied; -1 if the batch failed.
int mc_executor_finish_batch(void* process, Executor::TimedCall* calls, uint32_t calls_max) {
  std::vector<Executor::TimedCall> found;
  if (!executor_of(process).finish_batch(found)) return -1;
  std::copy_n(found.begin(), std::min<size_t>(found.size(), calls_max), calls);
  return static_cast<int>(found.size());
}

// Returns the number of items of an itemised batch, of which at most `items_max` are copied; -1 on
// failure.
int mc_executor_take_items(void* process, PlainItem* items, uint32_t items_max) {
  std::vector<CallItem> found;
  if (!executor_of(process).take_items(found)) return -1;
  const size_t count = std::min<size_t>(found.size(), items_max);
  for (size_t i = 0; i < count; ++i) {
    const CallItem& item = found[i];
    copy_text(item.name, items[i].name, sizeof items[i].name);
    copy_text(item.owner, items[i].owner, sizeof items[i].owner);
    std::copy_n(item.grid, 3, items[i].numbers);
    std::copy_n(item.block, 3, items[i].numbers + 3);
    items[i].numbers[6] = item.registers;
    items[i].numbers[7] = item.shared_bytes;
    items[i].numbers[8] = item.launches;
    items[i].us = item.us;
  }
  return static_cast<int>(count);
}

uint64_t mc_executor_batch_memory_bytes(void* process) {
  return executor_of(process).batch_memory_bytes();
}

int mc_executor_export_outputs(void* process, uint32_t call, const uint64_t* bytes,
                               size_t num_parts) {
  return executor_of(process).export_outputs(call, bytes, num_parts);
}

// Creates a stopwatch in the current context, for a process that runs calls itself; null if the
// driver fails.
void* mc_stopwatch_create() {
  std::string why;
  CUdevice device = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  return Stopwatch::create(device, why).release();
}

void mc_stopwatch_reset(void* watch) { stopwatch_at(watch).reset(); }

int mc_stopwatch_begin(void* watch, uint64_t stream, int is_gated) {
  return stopwatch_at(watch).begin(reinterpret_cast<CUstream>(stream), is_gated != 0);
}

int mc_stopwatch_end(void* watch, uint64_t stream) {
  return stopwatch_at(watch).end(reinterpret_cast<CUstream>(stream));
}

// Waits for the device.  Returns the number of calls, of which at most `calls_max` are copied; -1
// on failure.
int mc_stopwatch_times(void* watch, double* us, int* was_queued_whole, uint32_t calls_max) {
  std::vector<Stopwatch::Call> calls;
  if (cuCtxSynchronize() != CUDA_SUCCESS) return -1;
  if (stopwatch_at(watch).times(calls) != CUDA_SUCCESS) return -1;
  for (size_t i = 0; i < calls.size() && i < calls_max; ++i) {
    us[i] = calls[i].us;
    was_queued_whole[i] = calls[i].was_queued_whole ? 1 : 0;
  }
  return static_cast<int>(calls.size());
}

// The candidate's launches, launches of its own kernels and bytes to the host so far; the first
// unsupported feature and the first forbidden kernel, each in a buffer of `bytes` bytes.
void mc_executor_use(void* process, uint64_t* counts, char* unsupported, char* forbidden,
                     size_t bytes) {
  const Use use = executor_of(process).use();
  counts[0] = use.launches;
  counts[1] = use.launches_own;
  counts[2] = use.bytes_to_host;
  counts[3] = use.bytes_moved;
  copy_text(use.unsupported, unsupported, bytes);
  copy_text(use.forbidden, forbidden, bytes);
}

// Returns 0 if the process may serve another candidate.
int mc_executor_detach(void* process) {
  Process& p = process_at(process);
  p.is_over = true;
  if (p.thread.joinable()) p.thread.join();
  return p.executor->detach() ? 0 : 1;
}

}  // extern "C"
