// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a device process itself. Each function queues its kernel in a stream and returns
// a CUresult.
#ifndef MC_DEVICE_CUDA_KERNELS_H_
#define MC_DEVICE_CUDA_KERNELS_H_

#include <cuda.h>

#include <cstdint>

#include "commands.h"

namespace mc::device {

// A secret that masks bytes.
struct Mask {
  uint64_t words[2];
};

// Copies bytes, each XORed with the mask's pseudo-random stream from its 8-byte word `first_word`
// on. The same mask and first word unmask them.
CUresult copy_masked(CUdeviceptr target, CUdeviceptr source, uint64_t bytes, const Mask& mask,
                     uint64_t first_word, CUstream stream);

// Reads `bytes` bytes, a multiple of 16. More bytes than the cache's size evict its contents.
// `sink` is four bytes of memory.
CUresult read_through(CUdeviceptr source, uint64_t bytes, CUdeviceptr sink, CUstream stream);

// ---- For checked programs: the device in software reports the source location of a fault.

// The next driver calls belong to a command with this Header::location.
void begin_command(uint64_t location);
// Reports a copy of `bytes` bytes that was refused because it is not within the device's memory.
void note_refused_copy(uint64_t bytes);
void note_host_access(const HostAccess& access);

// Reports a call of a library function that this device does not have. Later failures are then not
// the candidate's, whether or not it checks the status.
void note_missing_library(const char* function);

// Writes a word to host-visible memory.
CUresult store_word(CUdeviceptr target, uint64_t value, CUstream stream);

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_KERNELS_H_
