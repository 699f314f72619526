// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's operators for a GPU's device process (operators/operators.h): they compute on the host,
// on copies of the tensors' memory, so that they give the same bits as on a device in software.
// Only verdicts that are recorded or replayed need them (docs/replay.md).
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace {

// The host copies for one operator call, by device address.
std::map<uint64_t, std::unique_ptr<std::vector<char>>>& copies() {
  static auto* const all = new std::map<uint64_t, std::unique_ptr<std::vector<char>>>;
  return *all;
}

}  // namespace

extern "C" {

// A host copy of device memory; null if the memory cannot be read.
void* mc_executor_host(uint64_t address, uint64_t bytes) {
  auto copy = std::make_unique<std::vector<char>>(bytes);
  if (cuMemcpyDtoHAsync(copy->data(), address, bytes, CU_STREAM_PER_THREAD) != CUDA_SUCCESS ||
      cuStreamSynchronize(CU_STREAM_PER_THREAD) != CUDA_SUCCESS) {
    return nullptr;
  }
  auto& kept = copies()[address];
  kept = std::move(copy);
  return kept->data();
}

// Copies back what an operator wrote, within `extent` bytes of a copy.
void mc_executor_note_operator(uint64_t target, uint64_t, uint64_t extent, const uint64_t*,
                               size_t) {
  auto next = copies().upper_bound(target);
  if (next == copies().begin()) return;
  --next;
  const uint64_t offset = target - next->first;
  if (offset > next->second->size() || extent > next->second->size() - offset) return;
  // The operator has already replied: an error appears at the next use of the memory.
  cuMemcpyHtoDAsync(target, next->second->data() + offset, extent, CU_STREAM_PER_THREAD);
  cuStreamSynchronize(CU_STREAM_PER_THREAD);
}

// Frees the copies when no operator uses them.
void mc_executor_end_operator() { copies().clear(); }

}  // extern "C"
