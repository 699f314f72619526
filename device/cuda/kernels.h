// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a device process itself.  Each is queued in a stream; the result is a CUresult.
#ifndef MC_DEVICE_CUDA_KERNELS_H_
#define MC_DEVICE_CUDA_KERNELS_H_

#include <cuda.h>

#include <cstdint>

#include "commands.h"

namespace mc::device {

// A secret by which bytes are masked.
struct Mask {
  uint64_t words[2];
};

// Copies bytes, each XORed with a stream that the mask determines from its word `first_word` (of
// eight bytes) on: what was masked is unmasked by the same mask and the same first word.
CUresult copy_masked(CUdeviceptr target, CUdeviceptr source, uint64_t bytes, const Mask& mask,
                     uint64_t first_word, CUstream stream);

// Reads so many bytes, a multiple of 16: what the cache held before is gone where they are more
// than it holds.  `sink` is memory of four bytes.
CUresult read_through(CUdeviceptr source, uint64_t bytes, CUdeviceptr sink, CUstream stream);

// ---- For checked programs, of whose faults a device in software reports where they are.

// The next call of the driver follows from a command with this Header::place.
void begin_command(uint64_t place);
// A copy of so many bytes is refused, as they are not within the device's memory.
void note_refused_copy(uint64_t bytes);
void note_host_access(const HostAccess& access);

// A function of a library was called, which this device does not have. What follows says nothing
// of the candidate, whether or not it looks at the status.
void note_missing_library(const char* function);

// Writes a word to memory that the host sees.
CUresult store_word(CUdeviceptr target, uint64_t value, CUstream stream);

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_KERNELS_H_
