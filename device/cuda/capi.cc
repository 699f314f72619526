// SPDX-License-Identifier: Apache-2.0
//
// The executor as C functions, for harness/device/process.py.
#include <unistd.h>

#include <cstring>
#include <thread>

#include "cuda/executor.h"

using mc::device::Executor;
using mc::device::Use;

namespace {

struct Process {
  std::unique_ptr<Executor> executor;
  std::thread thread;
  std::atomic<bool> is_over{false};
};

void copy_text(const std::string& text, char* target, size_t bytes) {
  if (bytes == 0) return;
  const size_t taken = std::min(bytes - 1, text.size());
  std::memcpy(target, text.data(), taken);
  target[taken] = 0;
}

}  // namespace

extern "C" {

// A process's executor; null with the reason in `why` where the driver refuses.
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
  return static_cast<Process*>(process)->executor->attach(descriptor) ? 0 : 1;
}

void mc_executor_allow_file(void* process, const char* path_there, const char* path_here,
                            int is_own) {
  static_cast<Process*>(process)->executor->allow_file(path_there, path_here, is_own != 0);
}

void mc_executor_allow_foreign_kernels(void* process, const char* pattern) {
  static_cast<Process*>(process)->executor->allow_foreign_kernels(pattern);
}

// Serves the channel in a thread until mc_executor_detach().
void mc_executor_serve(void* process) {
  auto* p = static_cast<Process*>(process);
  p->is_over = false;
  p->thread = std::thread([p] { p->executor->serve(p->is_over); });
}

uint64_t mc_executor_import(void* process, int descriptor, uint64_t bytes) {
  return static_cast<Process*>(process)->executor->import_region(descriptor, bytes);
}

void mc_executor_release(void* process, uint64_t address) {
  static_cast<Process*>(process)->executor->release_region(address);
}

int mc_executor_export(void* process, const Executor::Part* parts, size_t num_parts,
                       uint64_t bytes) {
  return static_cast<Process*>(process)->executor->export_parts(parts, num_parts, bytes);
}

// Launches, own launches and bytes to the host so far; the first thing that was not supported, and
// the first kernel that was forbidden, each in a buffer of `bytes`.
void mc_executor_use(void* process, uint64_t* counts, char* unsupported, char* forbidden,
                     size_t bytes) {
  const Use use = static_cast<Process*>(process)->executor->use();
  counts[0] = use.launches;
  counts[1] = use.launches_own;
  counts[2] = use.bytes_to_host;
  copy_text(use.unsupported, unsupported, bytes);
  copy_text(use.forbidden, forbidden, bytes);
}

// 0 where the process may serve another candidate.
int mc_executor_detach(void* process) {
  auto* p = static_cast<Process*>(process);
  p->is_over = true;
  if (p->thread.joinable()) p->thread.join();
  return p->executor->detach() ? 0 : 1;
}

}  // extern "C"
