// SPDX-License-Identifier: Apache-2.0
//
// The device that the driver describes: what programs read of it, and the limits of launches.
//
// It is that of an H100, so that programs do here what they do there: compute capability 9.0, the
// limits of table "Technical Specifications per Compute Capability" of the CUDA C++ Programming
// Guide, and the name, clocks and memory that deviceQuery of CUDA's samples prints on one.  A
// candidate for another device may get some of that one's attributes in their place.
#ifndef MC_PTX_DRIVER_DESCRIPTION_H_
#define MC_PTX_DRIVER_DESCRIPTION_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <utility>

#include "ptx/device.h"

namespace mc::ptx_driver {

inline constexpr const char* kName = "NVIDIA H100 80GB HBM3";
inline constexpr int kArchitecture = 90;
inline constexpr uint64_t kMemoryBytes = 85'029'158'912;  // The bytes that programs read.
// The limit of what is mapped: it is the memory of this machine.
inline constexpr uint64_t kMappedBytesMax = uint64_t{16} << 30;
// The registers of a thread where no machine code says them; a common number.
inline constexpr int kRegisters = 32;

// A kernel's needs.
struct BlockNeeds {
  int threads = 0;
  int registers = kRegisters;  // The registers of one thread.
  uint64_t shared_bytes = 0;
};

class Description {
 public:
  Description() = default;
  // The attributes in `others` are of another device than an H100.
  explicit Description(std::map<CUdevice_attribute, int> others) : others_(std::move(others)) {}
  // 0 for what the device does not have. The size of a warp is the driver's.
  int at(CUdevice_attribute attribute) const;
  // Bytes of shared memory of a block whose kernel asks for no more, and of one that does.
  int shared_bytes_default() const { return at(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK); }
  int shared_bytes_max() const { return at(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN); }
  // Blocks that a multiprocessor holds at once.
  int resident_blocks(const BlockNeeds& needs) const;

 private:
  std::map<CUdevice_attribute, int> others_;
};

// Threads of a block that the registers of a multiprocessor are enough for; a multiple of a warp.
int threads_by_registers(int registers);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_DESCRIPTION_H_
