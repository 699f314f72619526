// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime interface over the emulated device.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "runtime/device.h"
#include "runtime/runtime.h"
// Last: it defines __noinline__, which the standard library uses.
#include "mc_emu/runtime_api.h"

using mc::emu::Runtime;

struct McEmuStream {
  int unused = 0;
};

struct McEmuEvent {
  uint64_t recorded_at = 0;
};

namespace {

using mc::emu::kBlocksPerMultiprocessor;
using mc::emu::kMultiprocessors;
using mc::emu::kSharedPerMultiprocessor;
using mc::emu::kThreadsPerMultiprocessor;

cudaError_t finish(cudaError_t error) {
  Runtime& runtime = Runtime::get();
  const int sticky = runtime.sticky_error();
  return static_cast<cudaError_t>(runtime.set_last_error(sticky != 0 ? sticky : error));
}

size_t total_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
}

void copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
               size_t height) {
  for (size_t row = 0; row < height; ++row) {
    Runtime::get().copy(static_cast<char*>(to) + row * to_pitch,
                        static_cast<const char*>(from) + row * from_pitch, width);
  }
}

struct Name {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr Name kNames[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
};

const Name& find_name(cudaError_t error) {
  static constexpr Name kUnknown{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  for (const Name& name : kNames) {
    if (name.error == error) return name;
  }
  return kUnknown;
}

int attribute_value(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7FFFFFFF;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(mc::emu::kSharedDefaultMax);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(mc::emu::kSharedOptInMax);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(kSharedPerMultiprocessor);
    case cudaDevAttrTotalConstantMemory:
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return 65536;
    case cudaDevAttrWarpSize:
      return warpSize;
    case cudaDevAttrMultiProcessorCount:
      return static_cast<int>(kMultiprocessors);
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return static_cast<int>(kThreadsPerMultiprocessor);
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return static_cast<int>(kBlocksPerMultiprocessor);
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      return 1000000;
    case cudaDevAttrGlobalMemoryBusWidth:
      return 5120;
    case cudaDevAttrL2CacheSize:
      return 40 << 20;
    case cudaDevAttrComputeCapabilityMajor:
      return 8;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return 1024;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrCooperativeLaunch:
      return 1;
  }
  return 0;
}

cudaDeviceProp make_properties() {
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "CPU emulation of a CUDA device");
  p.totalGlobalMem = total_memory();
  p.sharedMemPerBlock = mc::emu::kSharedDefaultMax;
  p.sharedMemPerBlockOptin = mc::emu::kSharedOptInMax;
  p.sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
  p.reservedSharedMemPerBlock = 1024;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = warpSize;
  p.memPitch = 0x7FFFFFFF;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7FFFFFFF;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = p.memoryClockRate = 1000000;
  p.totalConstMem = 65536;
  p.major = 8;
  p.multiProcessorCount = kMultiprocessors;
  p.concurrentKernels = p.unifiedAddressing = p.managedMemory = p.cooperativeLaunch = 1;
  p.canMapHostMemory = 1;
  p.memoryBusWidth = 5120;
  p.l2CacheSize = 40 << 20;
  p.maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  p.maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
  return p;
}

}  // namespace

extern "C" {

// --- Memory.

cudaError_t cudaMalloc(void** pointer, size_t size) {
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  *pointer = size == 0 ? nullptr : mc_emu_arena_allocate(size);
  return finish(size != 0 && *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t) {
  return cudaMalloc(pointer, size);
}
cudaError_t cudaMallocHost(void** pointer, size_t size) {
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  *pointer = size == 0
                 ? nullptr
                 : Runtime::get().arena().allocate(size, mc::emu::Arena::Visibility::kHostToo);
  return finish(size != 0 && *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned) {
  return cudaMallocHost(pointer, size);
}
cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned) {
  return cudaMallocHost(pointer, size);
}
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}
cudaError_t cudaFree(void* pointer) {
  mc_emu_arena_release(pointer);
  return finish(cudaSuccess);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *total_bytes = total_memory();
  *free_bytes = *total_bytes / 2;
  return finish(cudaSuccess);
}

cudaError_t cudaMemset(void* pointer, int value, size_t size) {
  if (Runtime::get().sticky_error() == 0) Runtime::get().fill(pointer, value, size);
  return finish(cudaSuccess);
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t size, cudaStream_t) {
  return cudaMemset(pointer, value, size);
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) {
    Runtime::get().fill(static_cast<char*>(pointer) + row * pitch, value, width);
  }
  return finish(cudaSuccess);
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t) {
  return cudaMemset2D(pointer, pitch, value, width, height);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  if (Runtime::get().sticky_error() == 0) Runtime::get().copy(to, from, size);
  return finish(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, size, kind);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind) {
  if (width > to_pitch || width > from_pitch) return finish(cudaErrorInvalidPitchValue);
  copy_rows(to, to_pitch, from, from_pitch, width, height);
  return finish(cudaSuccess);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

// --- Errors.

cudaError_t cudaGetLastError() {
  return static_cast<cudaError_t>(Runtime::get().take_last_error());
}
cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(Runtime::get().last_error()); }
const char* cudaGetErrorString(cudaError_t error) { return find_name(error).text; }
const char* cudaGetErrorName(cudaError_t error) { return find_name(error).name; }

// --- The device.

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return finish(cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  return finish(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return finish(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return finish(cudaErrorInvalidDevice);
  *properties = make_properties();
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return finish(cudaErrorInvalidDevice);
  *value = attribute_value(attribute);
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() { return finish(cudaSuccess); }
cudaError_t cudaDeviceReset() { return finish(cudaSuccess); }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return finish(cudaSuccess); }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return finish(cudaSuccess); }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return finish(cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return finish(cudaSuccess);
}

// --- Streams and events: all work is done when the call that started it returns.

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new McEmuStream;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return finish(cudaSuccess); }
cudaError_t cudaStreamQuery(cudaStream_t) { return finish(cudaSuccess); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return finish(cudaSuccess); }
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  mc_emu_report_unsupported("CUDA graphs: cudaStreamBeginCapture");
  return finish(cudaErrorNotSupported);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new McEmuEvent;
  return finish(cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return finish(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (event == nullptr) return finish(cudaErrorInvalidResourceHandle);
  event->recorded_at = mc_emu_nanoseconds();
  return finish(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return finish(cudaSuccess); }
cudaError_t cudaEventQuery(cudaEvent_t) { return finish(cudaSuccess); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>(static_cast<double>(end->recorded_at) -
                                     static_cast<double>(start->recorded_at)) *
                  1e-6f;
  return finish(cudaSuccess);
}

// --- Functions.

cudaError_t mc_emu_function_set_attribute(const void* function, int attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return finish(cudaSuccess);
  if (value < 0) return finish(cudaErrorInvalidValue);
  return finish(
      static_cast<cudaError_t>(Runtime::get().allow_shared(function, static_cast<size_t>(value))));
}

cudaError_t mc_emu_function_get_attributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 80;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(mc::emu::kSharedDefaultMax);
  return finish(cudaSuccess);
}

cudaError_t mc_emu_occupancy(int* blocks, int threads, size_t shared_bytes) {
  if (threads <= 0) return finish(cudaErrorInvalidValue);
  *blocks = threads > 1024 ? 0
                           : static_cast<int>(mc::emu::blocks_per_multiprocessor(
                                 static_cast<size_t>(threads), shared_bytes));
  return finish(cudaSuccess);
}

}  // extern "C"
