// SPDX-License-Identifier: Apache-2.0
#include "client/managed.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdlib>
#include <iterator>

#include "client/client.h"

namespace mc::device {
namespace {

constexpr uint64_t kPage = 4096;

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
  const uint64_t whole = (bytes + kPage - 1) / kPage * kPage;
  if (const cudaError_t error = Client::get().allocate(pointer, whole)) return error;
  // The host may read it at once, and to kernels the host has written it.
  cudaError_t error = cudaMemset(*pointer, 0, whole);
  if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
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

bool Managed::release(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = bytes_.find(static_cast<const char*>(pointer));
  if (found == bytes_.end()) return false;
  // The addresses stay the device's, and hold nothing of the host's.
  mmap(pointer, found->second, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  bytes_.erase(found);
  return true;
}

bool Managed::has(const void* pointer) {
  const auto* const place = static_cast<const char*>(pointer);
  const std::lock_guard lock(mutex_);
  const auto next = bytes_.upper_bound(place);
  if (next == bytes_.begin()) return false;
  return place < std::prev(next)->first + std::prev(next)->second;
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

// Memory that the host has pinned is on the device where it was asked for as mapped.
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
