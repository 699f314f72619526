// SPDX-License-Identifier: Apache-2.0
#include "client/managed.h"

#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <iterator>

#include "check.h"
#include "client/client.h"

namespace mc::device {
namespace {

constexpr uint64_t kPage = 4096;

HostAccess access_of(const void* address, const ucontext_t& context) {
  constexpr greg_t kWrites = 2;  // A bit of the processor's error code.
  return {.address = reinterpret_cast<uint64_t>(address),
          .is_managed = Managed::get().has(address) ? 1U : 0U,
          .writes = (context.uc_mcontext.gregs[REG_ERR] & kWrites) != 0 ? 1U : 0U};
}

// Handles SIGSEGV: the program's own code accessed protected memory, and holds none of our locks.
void on_fault(int number, siginfo_t* info, void* data) {
  const auto& context = *static_cast<const ucontext_t*>(data);
  if (Client::get().is_on_device(info->si_addr)) {
    Client::get().note_location(reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]));
    if (Managed::get().touch(info->si_addr, access_of(info->si_addr, context))) return;
  }
  signal(number, SIG_DFL);  // The access is repeated and ends the program.
}
}  // namespace

Managed& Managed::get() {
  static auto* managed = new Managed;  // Programs free memory after main().
  return *managed;
}

void Managed::open(const char* text) {
  char* end = nullptr;
  const long descriptor = std::strtol(text, &end, 10);
  if (*end != ':') return;
  base_ = std::strtoull(end + 1, nullptr, 10);
  descriptor_ = static_cast<int>(descriptor);
}

cudaError_t Managed::allocate(void** pointer, uint64_t bytes) {
  MC_CHECK(is_open());
  const uint64_t whole = (bytes + kPage - 1) / kPage * kPage;
  if (const cudaError_t error = Client::get().allocate(pointer, whole)) return error;
  // The host may read the memory at once; to kernels it counts as written by the host.
  cudaError_t error = cudaMemset(*pointer, 0, whole);
  if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
  MC_CHECK(reinterpret_cast<uint64_t>(*pointer) >= base_);
  const auto offset = static_cast<off_t>(reinterpret_cast<uint64_t>(*pointer) - base_);
  if (error != cudaSuccess || mmap(*pointer, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                   descriptor_, offset) == MAP_FAILED) {
    Client::get().release(*pointer);
    return cudaErrorMemoryAllocation;
  }
  const std::lock_guard lock(mutex_);
  bytes_[static_cast<const char*>(*pointer)] = whole;
  return cudaSuccess;
}

bool Managed::map(const void* pointer, uint64_t bytes) {
  const uint64_t first = reinterpret_cast<uint64_t>(pointer) / kPage * kPage;
  const uint64_t end = (reinterpret_cast<uint64_t>(pointer) + bytes + kPage - 1) / kPage * kPage;
  MC_CHECK(is_open() && first >= base_);
  const std::lock_guard lock(mutex_);
  for (uint64_t page = first; page < end; page += kPage) {  // Variables may share pages.
    auto* const here = reinterpret_cast<char*>(page);
    if (bytes_.contains(here)) continue;
    if (mmap(here, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, descriptor_,
             static_cast<off_t>(page - base_)) == MAP_FAILED) {
      return false;
    }
    bytes_[here] = kPage;
  }
  return true;
}

bool Managed::release(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = bytes_.find(static_cast<const char*>(pointer));
  if (found == bytes_.end()) return false;
  // The range stays reserved for the device, without access from the host.
  mmap(pointer, found->second, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  bytes_.erase(found);
  return true;
}

bool Managed::has(const void* pointer) {
  const auto* const address = static_cast<const char*>(pointer);
  const std::lock_guard lock(mutex_);
  const auto next = bytes_.upper_bound(address);
  if (next == bytes_.begin()) return false;
  return address < std::prev(next)->first + std::prev(next)->second;
}

void Managed::begin_work() {
  const std::lock_guard lock(mutex_);
  if (bytes_.empty() || (is_closed_ && !has_opened_)) return;
  for (const auto& [begin, bytes] : bytes_) mprotect(const_cast<char*>(begin), bytes, PROT_NONE);
  is_closed_ = true;
  has_opened_ = false;
}

void Managed::end_work() {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) return;
  for (const auto& [begin, bytes] : bytes_) {
    mprotect(const_cast<char*>(begin), bytes, PROT_READ | PROT_WRITE);
  }
  is_closed_ = false;
}

void Managed::watch() {
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
}

bool Managed::touch(const void* address, const HostAccess& access) {
  Client::get().sender().call(Op::kHostAccess, access);
  if (access.is_managed == 0) return false;
  const std::lock_guard lock(mutex_);
  has_opened_ = true;
  auto* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) / kPage * kPage);
  return mprotect(page, kPage, PROT_READ | PROT_WRITE) == 0;
}

}  // namespace mc::device

using mc::device::Client;
using mc::device::Managed;
using mc::device::note_unsupported;

extern "C" {

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  if (!Managed::get().is_open()) return note_unsupported("cudaMallocManaged");
  return Managed::get().allocate(pointer, bytes);
}

// Pinned host memory has a device address only if it was allocated as mapped.
cudaError_t cudaHostGetDevicePointer(void** pointer, void* host, unsigned) {
  if (!Managed::get().has(host)) return note_unsupported("cudaHostGetDevicePointer");
  *pointer = host;
  return cudaSuccess;
}

// Hints change no result.
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return Managed::get().is_open() ? cudaSuccess : note_unsupported("cudaMemAdvise");
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return Managed::get().is_open() ? cudaSuccess : note_unsupported("cudaMemPrefetchAsync");
}

}  // extern "C"
