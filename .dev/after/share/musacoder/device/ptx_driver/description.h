// SPDX-License-Identifier: Apache-2.0
//
// The device that the driver describes: what programs read of it, and the limits of launches.
//
// It is that of an H100, so that programs do here what they do there: compute capability 9.0, the
// limits of table "Technical Specifications per Compute Capability" of the CUDA C++ Programming
// Guide, and the name, clocks and memory that deviceQuery of CUDA's samples prints on one.
#ifndef MC_PTX_DRIVER_DESCRIPTION_H_
#define MC_PTX_DRIVER_DESCRIPTION_H_

#include <cuda.h>

#include <cstdint>

#include "ptx/device.h"

namespace mc::ptx_driver {

inline constexpr const char* kName = "NVIDIA H100 80GB HBM3";
inline constexpr int kArchitecture = 90;
inline constexpr uint64_t kMemoryBytes = 85'029'158'912;  // The bytes that programs read.
// The limit of what is mapped: it is the memory of this machine.
inline constexpr uint64_t kMappedBytesMax = uint64_t{16} << 30;
inline constexpr int kSharedBytesDefault = 48 << 10;  // A block's, unless the kernel asks for more.
inline constexpr int kSharedBytesMax = 227 << 10;
// The registers of a thread where no machine code says them; a common number.
inline constexpr int kRegisters = 32;

// 0 for what the device does not have. The size of a warp is the driver's.
int attribute_of(CUdevice_attribute attribute);

inline constexpr int kMultiprocessors = ptx::kMultiprocessors;

// A kernel's needs.
struct BlockNeeds {
  int threads = 0;
  int registers = kRegisters;  // The registers of one thread.
  uint64_t shared_bytes = 0;
};

// Blocks that a multiprocessor holds at once.
int resident_blocks(const BlockNeeds& needs);
// Threads of a block that the registers of a multiprocessor are enough for; a multiple of a warp.
int threads_by_registers(int registers);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_DESCRIPTION_H_
