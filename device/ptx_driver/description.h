// SPDX-License-Identifier: Apache-2.0
//
// The properties of the device that programs read, and the limits of launches.
//
// They are an H100's, so that programs behave as on an H100: compute capability 9.0, the limits of
// table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide, and
// the name, clocks and memory that deviceQuery of CUDA's samples prints on an H100. For a
// candidate for another device, some attributes may be that device's.
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
inline constexpr uint64_t kMemoryBytes = 85'029'158'912;  // The memory size that programs read.
// The limit of mapped memory, which is memory of this machine.
inline constexpr uint64_t kMappedBytesMax = uint64_t{16} << 30;
// The registers of a thread if there is no machine code; a common value.
inline constexpr int kRegisters = 32;

// The resources that a kernel's blocks need.
struct BlockNeeds {
  int threads = 0;
  int registers = kRegisters;  // The registers of one thread.
  uint64_t shared_bytes = 0;
};

class Description {
 public:
  Description() = default;
  // `others` has the attributes that differ from an H100's.
  explicit Description(std::map<CUdevice_attribute, int> others) : others_(std::move(others)) {}
  // Returns 0 for a feature that the device lacks. Driver has the warp size.
  int at(CUdevice_attribute attribute) const;
  // The maximum shared memory of a block without opt-in, and with opt-in.
  int shared_bytes_default() const { return at(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK); }
  int shared_bytes_max() const { return at(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN); }
  // Blocks that a multiprocessor holds at once.
  int resident_blocks(const BlockNeeds& needs) const;

 private:
  std::map<CUdevice_attribute, int> others_;
};

// The largest block that the registers of a multiprocessor permit, a multiple of a warp.
int threads_by_registers(int registers);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_DESCRIPTION_H_
