// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime interface over the emulated device.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include <unistd.h>

#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "runtime/runtime.h"
// Last: it defines __noinline__, which the standard library uses.
#include "mc_emu/runtime_api.h"

using mc::emu::finish;
using mc::emu::Runtime;

namespace mc::emu {

cudaError_t finish(cudaError_t error) {
  Runtime& runtime = Runtime::get();
  const int sticky = runtime.sticky_error();
  return static_cast<cudaError_t>(runtime.set_last_error(sticky != 0 ? sticky : error));
}

}  // namespace mc::emu

struct McEmuPool {
  uint64_t release_threshold = 0;
};

namespace {

using mc::emu::kBlocksPerMultiprocessor;
using mc::emu::kMultiprocessors;
using mc::emu::kSharedPerMultiprocessor;
using mc::emu::kThreadsPerMultiprocessor;

// Records the work where the stream is captured.
template <class F>
bool capture(cudaStream_t stream, F work) {
  McEmuGraph* const graph = mc::emu::capture_of(stream);
  if (graph != nullptr) graph->work.push_back(std::move(work));
  return graph != nullptr;
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

cudaError_t allocate_visibly(void** pointer, size_t size, mc::emu::Arena::Visibility visibility) {
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  *pointer = size == 0 ? nullptr : Runtime::get().arena().allocate(size, visibility);
  return finish(size != 0 && *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
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
      return mc::emu::warp_size();
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
    case cudaDevAttrMaxPitch:
      return 0x7FFFFFFF;
    case cudaDevAttrTextureAlignment:
      return 512;
    case cudaDevAttrTexturePitchAlignment:
      return 32;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      return 2;
    case cudaDevAttrAsyncEngineCount:
      return 3;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrCooperativeLaunch:
      return 1;
    default:
      break;
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
  p.warpSize = mc::emu::warp_size();
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
  p.canMapHostMemory = p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.streamPrioritiesSupported = p.computePreemptionSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.deviceOverlap = 1;
  p.asyncEngineCount = 3;
  p.singleToDoublePrecisionPerfRatio = 2;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
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
  return allocate_visibly(pointer, size, mc::emu::Arena::Visibility::kPinned);
}
cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned) {
  return allocate_visibly(pointer, size, mc::emu::Arena::Visibility::kHostToo);
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
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t size, cudaStream_t stream) {
  if (capture(stream, [=] { cudaMemset(pointer, value, size); })) return finish(cudaSuccess);
  return cudaMemset(pointer, value, size);
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) {
    Runtime::get().fill(static_cast<char*>(pointer) + row * pitch, value, width);
  }
  return finish(cudaSuccess);
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  const auto fill = [=] { return cudaMemset2D(pointer, pitch, value, width, height); };
  return capture(stream, fill) ? finish(cudaSuccess) : fill();
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  if (Runtime::get().sticky_error() == 0) Runtime::get().copy(to, from, size);
  return finish(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (capture(stream, [=] { cudaMemcpy(to, from, size, kind); })) return finish(cudaSuccess);
  return cudaMemcpy(to, from, size, kind);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind) {
  if (width > to_pitch || width > from_pitch) return finish(cudaErrorInvalidPitchValue);
  copy_rows(to, to_pitch, from, from_pitch, width, height);
  return finish(cudaSuccess);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  const auto copy = [=] {
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
  };
  return capture(stream, copy) ? finish(cudaSuccess) : copy();
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width,
                         extent.height * extent.depth);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  for (size_t slice = 0; slice < extent.depth; ++slice) {
    cudaMemset2D(static_cast<char*>(to.ptr) + slice * to.ysize * to.pitch, to.pitch, value,
                 extent.width, extent.height);
  }
  return finish(cudaSuccess);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                              cudaStream_t stream) {
  const auto fill = [=] { return cudaMemset3D(to, value, extent); };
  return capture(stream, fill) ? finish(cudaSuccess) : fill();
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  const cudaMemcpy3DParms& p = *parameters;
  if (p.srcArray != nullptr || p.dstArray != nullptr) {
    mc_emu_unsupported("CUDA arrays");
    return finish(cudaErrorNotSupported);
  }
  const auto row = [](const cudaPitchedPtr& space, const cudaPos& at, size_t y, size_t z) {
    return static_cast<char*>(space.ptr) + ((at.z + z) * space.ysize + at.y + y) * space.pitch +
           at.x;
  };
  for (size_t z = 0; z < p.extent.depth; ++z) {
    for (size_t y = 0; y < p.extent.height; ++y) {
      Runtime::get().copy(row(p.dstPtr, p.dstPos, y, z), row(p.srcPtr, p.srcPos, y, z),
                          p.extent.width);
    }
  }
  return finish(cudaSuccess);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  const auto copy = [p = *parameters] { return cudaMemcpy3D(&p); };
  return capture(stream, copy) ? finish(cudaSuccess) : copy();
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t size) {
  if (to_device != 0 || from_device != 0) return finish(cudaErrorInvalidDevice);
  return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t size, cudaStream_t stream) {
  if (to_device != 0 || from_device != 0) return finish(cudaErrorInvalidDevice);
  return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

// --- Memory of the host that the device knows, and facts about pointers.

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned) {
  Runtime::get().register_host(reinterpret_cast<uintptr_t>(pointer), size);
  return finish(cudaSuccess);
}
cudaError_t cudaHostUnregister(void* pointer) {
  Runtime::get().unregister_host(reinterpret_cast<uintptr_t>(pointer));
  return finish(cudaSuccess);
}
cudaError_t cudaHostGetFlags(unsigned* flags, void*) {
  *flags = cudaHostAllocMapped;
  return finish(cudaSuccess);
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return finish(cudaSuccess);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  const mc::emu::Arena& arena = Runtime::get().arena();
  if (!arena.contains(address)) {
    attributes->device = cudaInvalidDeviceId;
    return finish(cudaSuccess);
  }
  const bool is_host = arena.find(address)->is_host_visible;
  attributes->type = is_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->devicePointer = const_cast<void*>(pointer);
  attributes->hostPointer = is_host ? const_cast<void*>(pointer) : nullptr;
  return finish(cudaSuccess);
}

// --- Pools.  There is one kind of memory; a pool has only its attributes.

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  static McEmuPool the_default;
  *pool = &the_default;
  return finish(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return finish(cudaSuccess); }
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  *pool = new McEmuPool;
  return finish(cudaSuccess);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return finish(cudaSuccess);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return finish(cudaSuccess); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    pool->release_threshold = *static_cast<uint64_t*>(value);
  }
  return finish(cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    *static_cast<uint64_t*>(value) = pool->release_threshold;
  } else if (attribute >= cudaMemPoolAttrReservedMemCurrent) {
    *static_cast<uint64_t*>(value) = 0;
  } else {
    *static_cast<int*>(value) = 1;
  }
  return finish(cudaSuccess);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return finish(cudaSuccess);
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t, cudaStream_t) {
  return cudaMalloc(pointer, size);
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
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return finish(cudaSuccess); }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  *value = limit == cudaLimitStackSize ? 1024 : limit == cudaLimitMallocHeapSize ? 8 << 20 : 0;
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  if (device != 0 || size < 13) return finish(cudaErrorInvalidValue);
  std::snprintf(id, static_cast<size_t>(size), "0000:00:00.0");
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char*) {
  *device = 0;
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return finish(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return finish(cudaErrorPeerAccessNotEnabled); }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  *value = 0;
  return finish(cudaErrorInvalidDevice);
}
cudaError_t cudaSetDeviceFlags(unsigned) { return finish(cudaSuccess); }
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
  return finish(cudaSuccess);
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return cudaGetDevice(device); }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return finish(cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
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

// The kernel's name as findings tell it; the string lives as long as the process.
const char* mc_emu_function_name(const void* function) {
  static std::set<std::string>* const names = new std::set<std::string>;
  const mc::emu::Module* module = mc::emu::Module::containing(function);
  const std::string name =
      module == nullptr ? "" : module->function_at(reinterpret_cast<uintptr_t>(function));
  return names->insert(name.empty() ? "cudaLaunchKernel" : name).first->c_str();
}

}  // extern "C"
