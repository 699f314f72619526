// SPDX-License-Identifier: Apache-2.0
//
// The attributes that the client reads itself: numbers of CUdevice_attribute and of
// CUfunction_attribute.  They are here, since the headers of MUSA and of older CUDA do not have all
// of the names.
#ifndef MC_DEVICE_CLIENT_ATTRIBUTES_H_
#define MC_DEVICE_CLIENT_ATTRIBUTES_H_

namespace mc::device {

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,  // Those for y and z follow.
  kMaxGridDimX = 5,   // Likewise.
  kMaxSharedMemoryPerBlock = 8,
  kTotalConstantMemory = 9,
  kWarpSize = 10,
  kMaxPitch = 11,
  kMaxRegistersPerBlock = 12,
  kTextureAlignment = 14,
  kMultiprocessorCount = 16,
  kIntegrated = 18,
  kCanMapHostMemory = 19,
  kConcurrentKernels = 31,
  kEccEnabled = 32,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kGlobalMemoryBusWidth = 37,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kAsyncEngineCount = 40,
  kUnifiedAddressing = 41,
  kPciDomainId = 50,
  kTexturePitchAlignment = 51,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kStreamPrioritiesSupported = 78,
  kGlobalL1CacheSupported = 79,
  kLocalL1CacheSupported = 80,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kManagedMemory = 83,
  kConcurrentManagedAccess = 89,
  kComputePreemptionSupported = 90,
  kCooperativeLaunch = 95,
  kMaxSharedMemoryPerBlockOptin = 97,
  kMaxBlocksPerMultiprocessor = 106,
  kMaxPersistingL2CacheSize = 108,
  kMaxAccessPolicyWindowSize = 109,
  kReservedSharedMemoryPerBlock = 111,
  kMemoryPoolsSupported = 115,
  kClusterLaunch = 120,
};

enum FunctionAttribute : int {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedBytes = 1,
  kFunctionConstBytes = 2,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionPtxVersion = 5,
  kFunctionBinaryVersion = 6,
  kFunctionCacheModeCa = 7,
  kFunctionMaxDynamicSharedBytes = 8,
  kFunctionSharedMemoryCarveout = 9,
};

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_ATTRIBUTES_H_
