// SPDX-License-Identifier: Apache-2.0
//
// The device that the driver describes: what programs read of it, and the limits of launches.
//
// It has compute capability 9.0 and the limits of table "Technical Specifications per Compute
// Capability" of the CUDA C++ Programming Guide.  The number of multiprocessors is small, so that
// kernels that size their grid by it start few blocks.
#ifndef MC_PTX_DRIVER_DESCRIPTION_H_
#define MC_PTX_DRIVER_DESCRIPTION_H_

#include <cuda.h>

#include <cstdint>

namespace mc::ptx_driver {

inline constexpr const char* kName = "MusaCoder PTX device";
inline constexpr int kArchitecture = 90;
inline constexpr uint64_t kMemoryBytes = uint64_t{16} << 30;
inline constexpr int kSharedBytesDefault = 48 << 10;  // A block's, unless the kernel asks for more.
inline constexpr int kSharedBytesMax = 227 << 10;
// Registers of a thread are not known before machine code is made; this is a common number.
inline constexpr int kRegisters = 32;

// 0 for what the device does not have.
int attribute_of(CUdevice_attribute attribute);

inline constexpr int kMultiprocessors = 8;

// Blocks that a multiprocessor holds at once, by threads and shared memory.
int resident_blocks(int threads, uint64_t shared_bytes);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_DESCRIPTION_H_
