// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime interface, the part that makes sense on one synchronous device.
//
// Every symbol is renamed in the object file: the process may hold a real libcudart.  Streams and
// events exist but all work is done when a call returns, or when the graph that it was captured in
// is launched.  After a fault in a kernel every call
// returns its error, as on a GPU.
#ifndef MC_EMU_RUNTIME_API_H_
#define MC_EMU_RUNTIME_API_H_

#include <map>

#include "mc_emu/driver_types.h"
#include "mc_emu/launch.h"

#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define CUDART_CB

// Declares one function under its CUDA name, defined as mc_emu_<name>.
#define MC_EMU_CUDA(name, ...) cudaError_t name(__VA_ARGS__) __asm__("mc_emu_" #name)

#pragma GCC visibility push(default)
extern "C" {

MC_EMU_CUDA(cudaMalloc, void** pointer, size_t size);
MC_EMU_CUDA(cudaMallocAsync, void** pointer, size_t size, cudaStream_t stream);
MC_EMU_CUDA(cudaMallocManaged, void** pointer, size_t size, unsigned flags);
MC_EMU_CUDA(cudaMallocPitch, void** pointer, size_t* pitch, size_t width, size_t height);
MC_EMU_CUDA(cudaMallocHost, void** pointer, size_t size);
MC_EMU_CUDA(cudaHostAlloc, void** pointer, size_t size, unsigned flags);
MC_EMU_CUDA(cudaFree, void* pointer);
MC_EMU_CUDA(cudaFreeAsync, void* pointer, cudaStream_t stream);
MC_EMU_CUDA(cudaFreeHost, void* pointer);
MC_EMU_CUDA(cudaMemGetInfo, size_t* free_bytes, size_t* total_bytes);
MC_EMU_CUDA(cudaMemset, void* pointer, int value, size_t size);
MC_EMU_CUDA(cudaMemsetAsync, void* pointer, int value, size_t size, cudaStream_t stream);
MC_EMU_CUDA(cudaMemset2D, void* pointer, size_t pitch, int value, size_t width, size_t height);
MC_EMU_CUDA(cudaMemset2DAsync, void* pointer, size_t pitch, int value, size_t width, size_t height,
            cudaStream_t stream);
MC_EMU_CUDA(cudaMemcpy, void* to, const void* from, size_t size, cudaMemcpyKind kind);
MC_EMU_CUDA(cudaMemcpyAsync, void* to, const void* from, size_t size, cudaMemcpyKind kind,
            cudaStream_t stream);
MC_EMU_CUDA(cudaMemcpy2D, void* to, size_t to_pitch, const void* from, size_t from_pitch,
            size_t width, size_t height, cudaMemcpyKind kind);
MC_EMU_CUDA(cudaMemcpy2DAsync, void* to, size_t to_pitch, const void* from, size_t from_pitch,
            size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream);

MC_EMU_CUDA(cudaGetLastError, void);
MC_EMU_CUDA(cudaPeekAtLastError, void);
const char* cudaGetErrorString(cudaError_t error) __asm__("mc_emu_cudaGetErrorString");
const char* cudaGetErrorName(cudaError_t error) __asm__("mc_emu_cudaGetErrorName");

MC_EMU_CUDA(cudaGetDevice, int* device);
MC_EMU_CUDA(cudaSetDevice, int device);
MC_EMU_CUDA(cudaGetDeviceCount, int* count);
MC_EMU_CUDA(cudaGetDeviceProperties, cudaDeviceProp* properties, int device);
MC_EMU_CUDA(cudaDeviceGetAttribute, int* value, cudaDeviceAttr attribute, int device);
MC_EMU_CUDA(cudaDeviceSynchronize, void);
MC_EMU_CUDA(cudaDeviceReset, void);
MC_EMU_CUDA(cudaDeviceSetCacheConfig, cudaFuncCache config);
MC_EMU_CUDA(cudaDeviceSetSharedMemConfig, cudaSharedMemConfig config);
MC_EMU_CUDA(cudaDriverGetVersion, int* version);
MC_EMU_CUDA(cudaRuntimeGetVersion, int* version);

MC_EMU_CUDA(cudaMalloc3D, cudaPitchedPtr* pitched, cudaExtent extent);
MC_EMU_CUDA(cudaMemset3D, cudaPitchedPtr to, int value, cudaExtent extent);
MC_EMU_CUDA(cudaMemset3DAsync, cudaPitchedPtr to, int value, cudaExtent extent,
            cudaStream_t stream = nullptr);
MC_EMU_CUDA(cudaMemcpy3D, const cudaMemcpy3DParms* parameters);
MC_EMU_CUDA(cudaMemcpy3DAsync, const cudaMemcpy3DParms* parameters, cudaStream_t stream = nullptr);
MC_EMU_CUDA(cudaMemcpyPeer, void* to, int to_device, const void* from, int from_device,
            size_t size);
MC_EMU_CUDA(cudaMemcpyPeerAsync, void* to, int to_device, const void* from, int from_device,
            size_t size, cudaStream_t stream = nullptr);
MC_EMU_CUDA(cudaHostRegister, void* pointer, size_t size, unsigned flags);
MC_EMU_CUDA(cudaHostUnregister, void* pointer);
MC_EMU_CUDA(cudaHostGetFlags, unsigned* flags, void* pointer);
MC_EMU_CUDA(cudaHostGetDevicePointer, void** device, void* host, unsigned flags);
MC_EMU_CUDA(cudaPointerGetAttributes, cudaPointerAttributes* attributes, const void* pointer);

MC_EMU_CUDA(cudaDeviceGetDefaultMemPool, cudaMemPool_t* pool, int device);
MC_EMU_CUDA(cudaDeviceGetMemPool, cudaMemPool_t* pool, int device);
MC_EMU_CUDA(cudaDeviceSetMemPool, int device, cudaMemPool_t pool);
MC_EMU_CUDA(cudaMemPoolCreate, cudaMemPool_t* pool, const cudaMemPoolProps* properties);
MC_EMU_CUDA(cudaMemPoolDestroy, cudaMemPool_t pool);
MC_EMU_CUDA(cudaMemPoolTrimTo, cudaMemPool_t pool, size_t bytes);
MC_EMU_CUDA(cudaMemPoolSetAttribute, cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
MC_EMU_CUDA(cudaMemPoolGetAttribute, cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
MC_EMU_CUDA(cudaMemPoolSetAccess, cudaMemPool_t pool, const cudaMemAccessDesc* descriptors,
            size_t count);
MC_EMU_CUDA(cudaMallocFromPoolAsync, void** pointer, size_t size, cudaMemPool_t pool,
            cudaStream_t stream);

MC_EMU_CUDA(cudaDeviceSetLimit, cudaLimit limit, size_t value);
MC_EMU_CUDA(cudaDeviceGetLimit, size_t* value, cudaLimit limit);
MC_EMU_CUDA(cudaDeviceGetCacheConfig, cudaFuncCache* config);
MC_EMU_CUDA(cudaDeviceGetPCIBusId, char* id, int size, int device);
MC_EMU_CUDA(cudaDeviceGetByPCIBusId, int* device, const char* id);
MC_EMU_CUDA(cudaDeviceCanAccessPeer, int* can, int device, int peer);
MC_EMU_CUDA(cudaDeviceEnablePeerAccess, int peer, unsigned flags);
MC_EMU_CUDA(cudaDeviceDisablePeerAccess, int peer);
MC_EMU_CUDA(cudaDeviceGetP2PAttribute, int* value, cudaDeviceP2PAttr attribute, int from, int to);
MC_EMU_CUDA(cudaSetDeviceFlags, unsigned flags);
MC_EMU_CUDA(cudaGetDeviceFlags, unsigned* flags);
MC_EMU_CUDA(cudaInitDevice, int device, unsigned device_flags, unsigned flags);
MC_EMU_CUDA(cudaChooseDevice, int* device, const cudaDeviceProp* properties);
MC_EMU_CUDA(cudaDeviceGetStreamPriorityRange, int* least, int* greatest);

MC_EMU_CUDA(cudaStreamCreate, cudaStream_t* stream);
MC_EMU_CUDA(cudaStreamCreateWithFlags, cudaStream_t* stream, unsigned flags);
MC_EMU_CUDA(cudaStreamCreateWithPriority, cudaStream_t* stream, unsigned flags, int priority);
MC_EMU_CUDA(cudaStreamDestroy, cudaStream_t stream);
MC_EMU_CUDA(cudaStreamSynchronize, cudaStream_t stream);
MC_EMU_CUDA(cudaStreamQuery, cudaStream_t stream);
MC_EMU_CUDA(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
MC_EMU_CUDA(cudaStreamGetPriority, cudaStream_t stream, int* priority);
MC_EMU_CUDA(cudaStreamGetFlags, cudaStream_t stream, unsigned* flags);
MC_EMU_CUDA(cudaStreamGetId, cudaStream_t stream, unsigned long long* id);
MC_EMU_CUDA(cudaStreamGetDevice, cudaStream_t stream, int* device);
MC_EMU_CUDA(cudaStreamCopyAttributes, cudaStream_t to, cudaStream_t from);
MC_EMU_CUDA(cudaStreamSetAttribute, cudaStream_t stream, cudaStreamAttrID attribute,
            const cudaStreamAttrValue* value);
MC_EMU_CUDA(cudaStreamGetAttribute, cudaStream_t stream, cudaStreamAttrID attribute,
            cudaStreamAttrValue* value);
MC_EMU_CUDA(cudaStreamAttachMemAsync, cudaStream_t stream, void* pointer, size_t size = 0,
            unsigned flags = cudaMemAttachSingle);
MC_EMU_CUDA(cudaStreamAddCallback, cudaStream_t stream, cudaStreamCallback_t callback, void* data,
            unsigned flags);
MC_EMU_CUDA(cudaLaunchHostFunc, cudaStream_t stream, cudaHostFn_t function, void* data);
MC_EMU_CUDA(cudaEventCreate, cudaEvent_t* event);
MC_EMU_CUDA(cudaEventCreateWithFlags, cudaEvent_t* event, unsigned flags);
MC_EMU_CUDA(cudaEventDestroy, cudaEvent_t event);
MC_EMU_CUDA(cudaEventRecord, cudaEvent_t event, cudaStream_t stream = nullptr);
MC_EMU_CUDA(cudaEventRecordWithFlags, cudaEvent_t event, cudaStream_t stream = nullptr,
            unsigned flags = 0);
MC_EMU_CUDA(cudaEventSynchronize, cudaEvent_t event);
MC_EMU_CUDA(cudaEventQuery, cudaEvent_t event);
MC_EMU_CUDA(cudaEventElapsedTime, float* milliseconds, cudaEvent_t start, cudaEvent_t end);

MC_EMU_CUDA(cudaStreamBeginCapture, cudaStream_t stream, cudaStreamCaptureMode mode);
MC_EMU_CUDA(cudaStreamBeginCaptureToGraph, cudaStream_t stream, cudaGraph_t graph,
            const cudaGraphNode_t* dependencies, const void* data, size_t count,
            cudaStreamCaptureMode mode);
MC_EMU_CUDA(cudaStreamEndCapture, cudaStream_t stream, cudaGraph_t* graph);
MC_EMU_CUDA(cudaStreamIsCapturing, cudaStream_t stream, cudaStreamCaptureStatus* status);
MC_EMU_CUDA(cudaThreadExchangeStreamCaptureMode, cudaStreamCaptureMode* mode);
MC_EMU_CUDA(cudaGraphCreate, cudaGraph_t* graph, unsigned flags);
MC_EMU_CUDA(cudaGraphDestroy, cudaGraph_t graph);
MC_EMU_CUDA(cudaGraphClone, cudaGraph_t* clone, cudaGraph_t graph);
MC_EMU_CUDA(cudaGraphGetNodes, cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
MC_EMU_CUDA(cudaGraphAddMemsetNode, cudaGraphNode_t* node, cudaGraph_t graph,
            const cudaGraphNode_t* dependencies, size_t count, const cudaMemsetParams* parameters);
MC_EMU_CUDA(cudaGraphAddMemcpyNode1D, cudaGraphNode_t* node, cudaGraph_t graph,
            const cudaGraphNode_t* dependencies, size_t count, void* to, const void* from,
            size_t size, cudaMemcpyKind kind);
MC_EMU_CUDA(cudaGraphAddHostNode, cudaGraphNode_t* node, cudaGraph_t graph,
            const cudaGraphNode_t* dependencies, size_t count,
            const cudaHostNodeParams* parameters);
MC_EMU_CUDA(cudaGraphAddEmptyNode, cudaGraphNode_t* node, cudaGraph_t graph,
            const cudaGraphNode_t* dependencies, size_t count);
MC_EMU_CUDA(cudaGraphAddChildGraphNode, cudaGraphNode_t* node, cudaGraph_t graph,
            const cudaGraphNode_t* dependencies, size_t count, cudaGraph_t child);
MC_EMU_CUDA(cudaGraphInstantiate, cudaGraphExec_t* executable, cudaGraph_t graph,
            unsigned long long flags = 0);
MC_EMU_CUDA(cudaGraphExecUpdate, cudaGraphExec_t executable, cudaGraph_t graph,
            cudaGraphExecUpdateResultInfo* result);
MC_EMU_CUDA(cudaGraphUpload, cudaGraphExec_t executable, cudaStream_t stream);
MC_EMU_CUDA(cudaGraphLaunch, cudaGraphExec_t executable, cudaStream_t stream);
MC_EMU_CUDA(cudaGraphExecDestroy, cudaGraphExec_t executable);

// The typed forms below call these.
cudaError_t mc_emu_function_set_attribute(const void* function, int attribute, int value);
cudaError_t mc_emu_function_get_attributes(cudaFuncAttributes* attributes, const void* function);
cudaError_t mc_emu_occupancy(int* blocks, int threads, size_t shared_bytes);
const char* mc_emu_function_name(const void* function);

}  // extern "C"
#pragma GCC visibility pop

#undef MC_EMU_CUDA

// --- Typed forms.

template <class T>
inline cudaError_t cudaMalloc(T** pointer, size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), size);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t size, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), size, stream);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t size, unsigned flags = 1) {
  return cudaMallocManaged(reinterpret_cast<void**>(pointer), size, flags);
}
template <class T>
inline cudaError_t cudaMallocHost(T** pointer, size_t size) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), size);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t size, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), size, flags);
}

template <class T>
inline cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  return cudaMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height);
}
template <class T>
inline cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t size, cudaMemPool_t pool,
                                           cudaStream_t stream) {
  return cudaMallocFromPoolAsync(reinterpret_cast<void**>(pointer), size, pool, stream);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t size, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), size, stream);
}
template <class T>
inline cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}

// Hints about where memory is to be, and how long it stays in a cache.
template <class... Arguments>
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, Arguments...) {
  return cudaSuccess;
}
template <class Location>
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, Location) {
  return cudaSuccess;
}
inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                        cudaGraphNode_t*, char*, size_t) {
  return cudaGraphInstantiate(executable, graph, 0);
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                 unsigned long long flags = 0) {
  return cudaGraphInstantiate(executable, graph, flags);
}
// Dependencies are between nodes that were added before, in whose order a graph runs.
template <class... Arguments>
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, Arguments...) {
  if (*from > *to) mc_emu::unsupported("a graph whose nodes were not added in their order");
  return cudaSuccess;
}
template <class... Arguments>
inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id = nullptr, Arguments...) {
  if (id != nullptr) *id = 1;
  return cudaStreamIsCapturing(stream, status);
}

inline constexpr cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}
inline constexpr cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline constexpr cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t width,
                                                    size_t height) {
  return {pointer, pitch, width, height};
}

inline cudaError_t cudaMemsetAsync(void* pointer, int value, size_t size) {
  return cudaMemsetAsync(pointer, value, size, nullptr);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, size, kind, nullptr);
}

template <class T>
inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t size, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  if (offset + size > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpy(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset,
                    from, size, kind);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t size,
                                           size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                           cudaStream_t stream = nullptr) {
  if (offset + size > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpyAsync(
      reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset, from, size,
      kind, stream);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t size, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  if (offset + size > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, size, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t size,
                                             size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                             cudaStream_t stream = nullptr) {
  if (offset + size > sizeof(T)) return cudaErrorInvalidValue;
  return cudaMemcpyAsync(to, reinterpret_cast<const char*>(&symbol) + offset, size, kind, stream);
}
template <class P, class T>
inline cudaError_t cudaGetSymbolAddress(P** pointer, T& symbol) {
  *reinterpret_cast<void**>(pointer) = const_cast<std::remove_const_t<T>*>(&symbol);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* size, const T&) {
  *size = sizeof(T);
  return cudaSuccess;
}

// A kernel by name or by pointer.
template <class F>
inline const void* mc_emu_function_address(F* function) {
  return reinterpret_cast<const void*>(function);
}
template <class F>
inline cudaError_t cudaFuncSetAttribute(F* function, cudaFuncAttribute attribute, int value) {
  return mc_emu_function_set_attribute(mc_emu_function_address(function), attribute, value);
}
template <class F>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* function) {
  return mc_emu_function_get_attributes(attributes, mc_emu_function_address(function));
}
template <class F>
inline cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaFuncSetSharedMemConfig(F*, cudaSharedMemConfig) {
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F*, int threads,
                                                                 size_t shared_bytes) {
  return mc_emu_occupancy(blocks, threads, shared_bytes);
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F*,
                                                                          int threads,
                                                                          size_t shared_bytes,
                                                                          unsigned) {
  return mc_emu_occupancy(blocks, threads, shared_bytes);
}
template <class F>
inline cudaError_t cudaFuncGetName(const char** name, F* function) {
  *name = mc_emu_function_name(mc_emu_function_address(function));
  return cudaSuccess;
}
template <class F, class SharedOfBlock>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, F*,
                                                                  SharedOfBlock shared_of_block,
                                                                  int limit = 0) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  int blocks = 0;
  const cudaError_t error =
      mc_emu_occupancy(&blocks, *block, static_cast<size_t>(shared_of_block(*block)));
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  *grid = blocks * multiprocessors;
  return error;
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F* function,
                                                      size_t shared_bytes = 0, int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid, block, function, [=](int) { return shared_bytes; }, limit);
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, F* function,
                                                               size_t shared_bytes = 0,
                                                               int limit = 0, unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSize(grid, block, function, shared_bytes, limit);
}
template <class F>
inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, F*, int blocks,
                                                             int threads) {
  if (blocks <= 0 || threads <= 0 || threads > 1024) return cudaErrorInvalidValue;
  int per_multiprocessor = 0;
  cudaDeviceGetAttribute(&per_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0);
  const int free = per_multiprocessor / blocks - 1024;
  *bytes = free < 0 ? 0 : free > 48 * 1024 ? 48 * 1024 : static_cast<size_t>(free);
  return cudaSuccess;
}

// --- Launches through pointers.  A kernel's address loses its type on the way through `void*`, so
// a cast of a kernel to it (which the launches' rewriting makes a call of kernel_pointer) notes how
// the kernel is called.

namespace mc_emu {

using LaunchAddress = cudaError_t (*)(const void* kernel, const Config& config, void** arguments,
                                      bool cooperative);

inline std::map<const void*, LaunchAddress>& kernels_by_address() {
  static std::map<const void*, LaunchAddress> kernels;
  return kernels;
}

template <class... P>
struct LaunchByPointer {
  using Kernel = void (*)(P...);

  template <size_t... kIndex>
  static cudaError_t run(Kernel kernel, const Config& config, void** arguments, bool cooperative,
                         std::index_sequence<kIndex...>) {
    return launch_as(
        cooperative, config, mc_emu_function_name(reinterpret_cast<const void*>(kernel)),
        [kernel](auto... p) MC_EMU_CALL { kernel(p...); },
        *static_cast<std::remove_cv_t<std::remove_reference_t<P>>*>(arguments[kIndex])...);
  }
  static cudaError_t run(const void* kernel, const Config& config, void** arguments,
                         bool cooperative) {
    return run(reinterpret_cast<Kernel>(const_cast<void*>(kernel)), config, arguments, cooperative,
               std::index_sequence_for<P...>());
  }
};

template <class... P>
void* kernel_pointer(void (*kernel)(P...)) {
  void* const address = reinterpret_cast<void*>(kernel);
  kernels_by_address()[address] = &LaunchByPointer<P...>::run;
  return address;
}
template <class T>
void* kernel_pointer(T* pointer) {
  return const_cast<void*>(reinterpret_cast<const volatile void*>(pointer));
}

inline cudaError_t launch_address(const void* kernel, const Config& config, void** arguments,
                                  bool cooperative) {
  const auto found = kernels_by_address().find(kernel);
  if (found == kernels_by_address().end()) return cudaErrorInvalidDeviceFunction;
  return found->second(kernel, config, arguments, cooperative);
}

// Reads the attributes of a launch; false where one is not emulated.
inline bool read_attributes(const cudaLaunchConfig_t& config, bool* cooperative) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) {
      *cooperative = attribute.val.cooperative != 0;
    }
    const auto& cluster = attribute.val.clusterDim;
    if (attribute.id == cudaLaunchAttributeClusterDimension &&
        cluster.x * cluster.y * cluster.z > 1) {
      unsupported("thread block clusters");
      return false;
    }
  }
  return true;
}

inline Config config_of(const cudaLaunchConfig_t& config) {
  return Config(config.gridDim, config.blockDim, config.dynamicSmemBytes, config.stream);
}

}  // namespace mc_emu

template <class... P>
inline cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return mc_emu::LaunchByPointer<P...>::run(reinterpret_cast<const void*>(kernel),
                                            mc_emu::Config(grid, block, shared_bytes, stream),
                                            arguments, false);
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return mc_emu::launch_address(kernel, mc_emu::Config(grid, block, shared_bytes, stream),
                                arguments, false);
}
template <class... P>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                                               void** arguments, size_t shared_bytes = 0,
                                               cudaStream_t stream = nullptr) {
  return mc_emu::LaunchByPointer<P...>::run(reinterpret_cast<const void*>(kernel),
                                            mc_emu::Config(grid, block, shared_bytes, stream),
                                            arguments, true);
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block,
                                               void** arguments, size_t shared_bytes = 0,
                                               cudaStream_t stream = nullptr) {
  return mc_emu::launch_address(kernel, mc_emu::Config(grid, block, shared_bytes, stream),
                                arguments, true);
}
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                       void** arguments) {
  bool cooperative = false;
  if (!mc_emu::read_attributes(*config, &cooperative)) return cudaErrorNotSupported;
  return mc_emu::launch_address(kernel, mc_emu::config_of(*config), arguments, cooperative);
}
// The arguments become the parameters' types, as in a call.
template <class... P, class... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                                      Arguments&&... arguments) {
  bool cooperative = false;
  if (!mc_emu::read_attributes(*config, &cooperative)) return cudaErrorNotSupported;
  return mc_emu::launch_as(
      cooperative, mc_emu::config_of(*config),
      mc_emu_function_name(reinterpret_cast<const void*>(kernel)),
      [kernel](auto... p) MC_EMU_CALL { kernel(p...); },
      static_cast<std::remove_cv_t<std::remove_reference_t<P>>>(
          std::forward<Arguments>(arguments))...);
}

// Takes the launch as a capture would.
inline cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies, size_t count,
                                          const cudaKernelNodeParams* parameters) {
  const cudaKernelNodeParams& p = *parameters;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCaptureToGraph(stream, graph, dependencies, nullptr, count,
                                cudaStreamCaptureModeRelaxed);
  const cudaError_t error =
      cudaLaunchKernel(p.func, p.gridDim, p.blockDim, p.kernelParams, p.sharedMemBytes, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaStreamDestroy(stream);
  size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  *node = reinterpret_cast<cudaGraphNode_t>(nodes);
  return error;
}

#endif  // MC_EMU_RUNTIME_API_H_
