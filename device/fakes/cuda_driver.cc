// SPDX-License-Identifier: Apache-2.0
//
// A CUDA driver for tests without a GPU: device memory is this process's memory, streams do their
// work at once, and kernels are functions of this file, known by their names.
//
// An address that is reserved and not mapped is inaccessible, as on a device; an access here is a
// fault of the test's process.
#include "fakes/cuda_driver.h"

#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda/kernels.h"

namespace {

// The failures that a test requests for the next calls.
CUresult pending_fault = CUDA_SUCCESS;
int num_live = 0;
int gates = 0;
bool fails_next_fill = false;

struct Kernel {
  const char* name;
  void (*run)(const char* arguments, unsigned blocks, unsigned threads);
  size_t parameters[4][2];  // Offset and bytes.
  int num_parameters;
};

template <typename Type>
Type argument(const char* arguments, size_t offset) {
  Type value;
  std::memcpy(&value, arguments + offset, sizeof value);
  return value;
}

const Kernel kKernels[] = {
    {"add_one",  // (float* x, int n)
     [](const char* a, unsigned blocks, unsigned threads) {
       auto* x = argument<float*>(a, 0);
       const int n = argument<int>(a, 8);
       for (unsigned i = 0; i < blocks * threads && static_cast<int>(i) < n; ++i) x[i] += 1;
     },
     {{0, 8}, {8, 4}},
     2},
    {"fault",
     [](const char*, unsigned, unsigned) { pending_fault = CUDA_ERROR_ILLEGAL_ADDRESS; },
     {},
     0},
};

struct Event {
  int records = 0;
};
std::map<CUmemGenericAllocationHandle, size_t> allocations;
std::map<CUdeviceptr, size_t> mappings;
alignas(64) float device_variable[16];

// A graph is the work that was launched while its stream was captured.
using Graph = std::vector<std::function<void()>>;
std::map<CUstream, Graph> captures;

CUresult settled() { return pending_fault; }

}  // namespace

namespace mc::device {
void FakeDriver::reset() {
  pending_fault = CUDA_SUCCESS;
  num_live = gates = 0;
  fails_next_fill = false;
  captures.clear();
}
void FakeDriver::fail_next_fill() { fails_next_fill = true; }
int FakeDriver::gates_waited_for() { return gates; }
size_t FakeDriver::mapped_ranges() { return mappings.size(); }
int FakeDriver::live_objects() { return num_live; }
}  // namespace mc::device

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&pending_fault);
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) { return cuDeviceGet(device, 0); }
CUresult cuCtxSynchronize() { return settled(); }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
#ifndef MC_DEVICE_MUSA
// The fake's tensor map is a copy of its arguments.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank,
                                void* address, const cuuint64_t* sizes, const cuuint64_t*,
                                const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
  map->opaque[0] = reinterpret_cast<uint64_t>(address);
  std::copy_n(sizes, rank, map->opaque + 1);
  return CUDA_SUCCESS;
}
#endif
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = size_t{1} << 30;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::strncpy(name, "fake device", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
  std::memset(uuid, 7, sizeof *uuid);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* text, int bytes, CUdevice) {
  std::strncpy(text, "0000:01:00.0", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  static const std::map<int, int> kValues = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2},
#ifdef MC_DEVICE_MUSA
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 3},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 1},
#else
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
#endif
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448}};
  const auto found = kValues.find(attribute);
  *value = found == kValues.end() ? 0 : found->second;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "CUDA_ERROR";
  return CUDA_SUCCESS;
}

// ---- Memory -------------------------------------------------------------------------------------

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *granularity = size_t{2} << 20;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr wanted,
                             unsigned long long) {
  constexpr size_t kAlignment = 2u << 20;
  constexpr int kTries = 64;
  // A test process may contain several device processes, whose addresses must not be near the
  // host's.
  void* memory = MAP_FAILED;
  for (int i = 0; i < kTries && memory == MAP_FAILED; ++i) {
    memory = mmap(reinterpret_cast<void*>(wanted + i * bytes), bytes + kAlignment, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto start = reinterpret_cast<uintptr_t>(memory);
  *address = (start + kAlignment - 1) / kAlignment * kAlignment;
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  // Other processes hold the rest of the device's memory.
  constexpr size_t kRoomBytes = size_t{4} << 30;
  if (bytes > kRoomBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = memfd_create("device memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = static_cast<CUmemGenericAllocationHandle>(file);
  allocations[*handle] = bytes;
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  allocations.erase(handle);
  close(static_cast<int>(handle));
  --num_live;
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  void* at = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                  static_cast<int>(handle), 0);
  if (at == MAP_FAILED) return CUDA_ERROR_INVALID_VALUE;
  mappings[address] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t) {
  const int failed = mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE);
  return failed == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  mappings.erase(address);
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* source,
                                        CUmemAllocationHandleType) {
  const int copy = dup(static_cast<int>(reinterpret_cast<intptr_t>(source)));
  if (copy < 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = static_cast<CUmemGenericAllocationHandle>(copy);
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void* target, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType, unsigned long long) {
  *static_cast<int*>(target) = dup(static_cast<int>(handle));
  return CUDA_SUCCESS;
}
// Addresses without memory behind them are refused, as on a device.
static bool is_mapped(CUdeviceptr address, size_t bytes) {
  const auto variable = reinterpret_cast<CUdeviceptr>(device_variable);
  if (address >= variable && address + bytes <= variable + sizeof device_variable) return true;
  auto next = mappings.upper_bound(address);
  if (next == mappings.begin()) return false;
  --next;
  return address + bytes <= next->first + next->second;
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  constexpr size_t kAlignment = 4096;
  *address = reinterpret_cast<CUdeviceptr>(
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  std::free(reinterpret_cast<void*>(address));
  --num_live;
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::calloc(1, bytes);
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  --num_live;
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned) {
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8_v2(CUdeviceptr target, unsigned char value, size_t count) {
  std::memset(reinterpret_cast<void*>(target), value, count);
  return settled();
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, size_t bytes, CUstream) {
  if (!is_mapped(target, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return settled();
}
CUresult cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, size_t bytes, CUstream) {
  if (!is_mapped(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(target, reinterpret_cast<const void*>(source), bytes);
  return settled();
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream) {
  if (!is_mapped(target, bytes) || !is_mapped(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::memmove(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source), bytes);
  return settled();
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  for (size_t row = 0; row < copy->Height; ++row) {
    const CUresult status =
        cuMemcpyDtoDAsync_v2(copy->dstDevice + row * copy->dstPitch,
                             copy->srcDevice + row * copy->srcPitch, copy->WidthInBytes, stream);
    if (status != CUDA_SUCCESS) return status;
  }
  return settled();
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream) {
  if (std::exchange(fails_next_fill, false)) return CUDA_ERROR_LAUNCH_FAILED;
  if (!is_mapped(target, count)) return CUDA_ERROR_INVALID_VALUE;
  std::memset(reinterpret_cast<void*>(target), value, count);
  return settled();
}
CUresult cuMemsetD2D8Async(CUdeviceptr target, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  for (size_t row = 0; row < height; ++row) {
    const CUresult status = cuMemsetD8Async(target + row * pitch, value, width, stream);
    if (status != CUDA_SUCCESS) return status;
  }
  return settled();
}

// ---- Modules and launches -----------------------------------------------------------------------

// A driver accepts code for one device, not a bundle for several.
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (*static_cast<const char*>(image) == '_') return CUDA_ERROR_INVALID_IMAGE;
  *module = reinterpret_cast<CUmodule>(const_cast<void*>(image));
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
  --num_live;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  for (const Kernel& kernel : kKernels) {
    if (std::strcmp(kernel.name, name) != 0) continue;
    *function = reinterpret_cast<CUfunction>(const_cast<Kernel*>(&kernel));
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule, const char* name) {
  if (std::strcmp(name, "variable") != 0) return CUDA_ERROR_NOT_FOUND;
  *address = reinterpret_cast<CUdeviceptr>(device_variable);
  *bytes = sizeof device_variable;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? 512
           : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 49152
                                                                          : 0;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  const auto* kernel = reinterpret_cast<const Kernel*>(function);
  if (index >= static_cast<size_t>(kernel->num_parameters)) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->parameters[index][0];
  *bytes = kernel->parameters[index][1];
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction, int, size_t,
                                                              unsigned) {
  *blocks = 4;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void** extra) {
  const auto* kernel = reinterpret_cast<const Kernel*>(function);
  const char* arguments = extra == nullptr ? nullptr : static_cast<const char*>(extra[1]);
  if (const auto capture = captures.find(config->hStream); capture != captures.end()) {
    const size_t bytes = arguments == nullptr ? 0 : *static_cast<size_t*>(extra[3]);
    capture->second.push_back(
        [kernel, given = std::string(arguments, bytes), blocks = config->gridDimX,
         threads = config->blockDimX] { kernel->run(given.data(), blocks, threads); });
    return CUDA_SUCCESS;
  }
  kernel->run(arguments, config->gridDimX, config->blockDimX);
  return CUDA_SUCCESS;  // The next call that waits reports a fault.
}

// ---- Streams, events, graphs --------------------------------------------------------------------

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int) {
  *stream = reinterpret_cast<CUstream>(new char);
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  delete reinterpret_cast<char*>(stream);
  --num_live;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) { return settled(); }
CUresult cuStreamQuery(CUstream) { return settled(); }
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return settled(); }
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status =
      captures.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  if (stream == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return captures.try_emplace(stream).second ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const auto capture = captures.extract(stream);
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = reinterpret_cast<CUgraph>(new Graph(capture.mapped()));
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph*, const CUgraphNode**, const CUgraphEdgeData**,
                                   size_t*) {
  *id = reinterpret_cast<cuuint64_t>(stream);
  return cuStreamIsCapturing(stream, status);
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Event);
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  delete reinterpret_cast<Event*>(event);
  --num_live;
  return CUDA_SUCCESS;
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream, unsigned) {
  ++reinterpret_cast<Event*>(event)->records;
  return settled();
}
CUresult cuEventQuery(CUevent) { return settled(); }
CUresult cuEventSynchronize(CUevent) { return settled(); }
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, 0);
}
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned) {
  ++gates;
  return settled();
}
CUresult cuEventElapsedTime_v2(float* ms, CUevent, CUevent) {
  *ms = 1.5f;
  return settled();
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  *exec = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph*>(graph)));
  ++num_live;
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream) {
  for (const auto& run : *reinterpret_cast<Graph*>(exec)) run();
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Graph*>(graph);
  --num_live;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return cuGraphDestroy(reinterpret_cast<CUgraph>(exec));
}

}  // extern "C"

// ---- The device process's own kernels -----------------------------------------------------------

namespace mc::device {

CUresult copy_masked(CUdeviceptr target, CUdeviceptr source, uint64_t bytes, const Mask& mask,
                     uint64_t first_word, CUstream) {
  auto* to = reinterpret_cast<unsigned char*>(target);
  const auto* from = reinterpret_cast<const unsigned char*>(source);
  for (uint64_t i = 0; i < bytes; ++i) {
    const uint64_t word = mask.words[0] ^ (mask.words[1] * (first_word + i / 8));
    to[i] = from[i] ^ static_cast<unsigned char>(word >> (i % 8 * 8));
  }
  return settled();
}

CUresult store_word(CUdeviceptr target, uint64_t value, CUstream) {
  std::memcpy(reinterpret_cast<void*>(target), &value, sizeof value);
  return settled();
}

CUresult read_through(CUdeviceptr, uint64_t, CUdeviceptr, CUstream) { return settled(); }

void begin_command(uint64_t) {}
void note_refused_copy(uint64_t) {}
void note_host_access(const HostAccess&) {}
void note_missing_library(const char*) {}

}  // namespace mc::device
