// SPDX-License-Identifier: Apache-2.0
//
// The functions of libcuda that PyTorch looks up as it starts, and those that programs look up by
// name. The remaining functions (unsupported.cc) are for kernels compiled at run time, for
// virtual memory management and for parts of a device.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "client/client.h"

namespace mc::device {
int note_unsupported_name(const char* name);
}

namespace {

using mc::device::Client;

#define MC_TEXT(name) #name
#define MC_NAME(name) MC_TEXT(name)  // The name, which device/musa/names.py may have changed.
constexpr std::string_view kInit = MC_NAME(cuInit);

// Returns the function of this library with that name, or null. No other library of the process
// has the driver's functions.
void* driver_function(const char* name) {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&cuInit), &self) == 0) return nullptr;
  void* library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* function = dlsym(library, name);
  dlclose(library);  // Lowers the reference count; the library stays loaded.
  return function;
}

cudaError_t find_entry_point(const char* name, void** function,
                             cudaDriverEntryPointQueryResult* result) {
  if (name == nullptr || function == nullptr) return cudaErrorInvalidValue;
  const bool is_driver =
      std::strncmp(name, kInit.data(), 2) == 0 && name[2] >= 'A' && name[2] <= 'Z';
  *function = is_driver ? driver_function(name) : nullptr;
  if (*function == nullptr) mc::device::note_unsupported_name(name);
  if (result != nullptr) {
    *result =
        *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

// NVRTC requests tables that are not documented, and works without them.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuDriverGetVersion(int* version) {
  *version = Client::get().sender().page().driver_version;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int index) {
  *device = 0;
  return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  if (attribute < 0 || attribute >= mc::device::kDeviceAttributesMax)
    return CUDA_ERROR_INVALID_VALUE;
  *value = Client::get().sender().page().attributes[attribute];
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(1);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(1);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = cudaGetErrorName(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

#ifndef MC_DEVICE_MUSA  // MUSA has descriptors of another form.
// A tensor map (for the tensor memory accelerator) is a block of bytes that the driver encodes;
// kernels take it as an argument.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (map == nullptr || rank == 0 || rank > mc::device::kTensorMapRankMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  mc::device::TensorMap command{};
  command.address = reinterpret_cast<uint64_t>(address);
  std::copy_n(sizes, rank, command.sizes);
  if (rank > 1) std::copy_n(strides, rank - 1, command.strides);
  std::copy_n(box, rank, command.box);
  std::copy_n(steps, rank, command.steps);
  command.rank = rank;
  const int kinds[] = {type, interleave, swizzle, promotion, fill};
  std::copy_n(kinds, std::size(kinds), command.kinds);
  return static_cast<CUresult>(
      Client::get().sender().call(mc::device::Op::kTensorMap, command, map, sizeof *map));
}
#endif

// The names with _ptsz belong to the default stream of each thread.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return find_entry_point(name, function, result);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function, unsigned,
                                                  unsigned long long,
                                                  cudaDriverEntryPointQueryResult* result) {
  return find_entry_point(name, function, result);
}
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return find_entry_point(name, function, result);
}
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* name, void** function, unsigned long long,
                                         cudaDriverEntryPointQueryResult* result) {
  return find_entry_point(name, function, result);
}

}  // extern "C"
