// SPDX-License-Identifier: Apache-2.0
//
// The functions of libcuda for modules that a program has in its memory, as Triton and NVRTC
// compile them. The images are PTX: machine code fits one device only, and nothing in it shows who
// wrote it.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "client/client.h"

namespace mc::device {
int note_unsupported_name(const char* name);
}

namespace {

using mc::device::Binary;
using mc::device::Client;
using mc::device::Function;

constexpr uint32_t kElfMagic = 0x464C457F;     // "\x7FELF" in memory.
constexpr uint32_t kFatbinMagic = 0xBA55ED50;  // A fat binary.

CUresult unsupported(const char* what) {
  return static_cast<CUresult>(mc::device::note_unsupported_name(what));
}

CUresult result(cudaError_t status) { return static_cast<CUresult>(status); }

Function* function_of(CUfunction function) {
  return Client::get().find_function(reinterpret_cast<const void*>(function));
}

}  // namespace

extern "C" {

// Notes a feature that this device lacks, for a compiler in Python that needs it
// (python/harness/candidate/triton_driver.py).
void mc_device_note_unsupported(const char* what) { unsupported(what); }

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char* text = static_cast<const char*>(image);
  uint32_t magic = 0;
  std::memcpy(&magic, text, strnlen(text, sizeof magic));
  if (magic == kElfMagic || magic == kFatbinMagic) {
    return unsupported("cuModuleLoadData with machine code; PTX can be loaded");
  }
  Binary* binary = nullptr;
  const cudaError_t status = Client::get().add_text(text, &binary);
  if (status == cudaSuccess) *module = reinterpret_cast<CUmodule>(binary);
  return result(status);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  Client::get().remove_binary(reinterpret_cast<Binary*>(module));
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* made, CUmodule module, const char* name) {
  if (made == nullptr || module == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* function = nullptr;
  const cudaError_t status =
      Client::get().add_function_of_text(reinterpret_cast<Binary*>(module), name, &function);
  if (status == cudaSuccess) *made = reinterpret_cast<CUfunction>(function);
  return result(status);
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const Function* known = function_of(function);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute < 0 || attribute >= static_cast<int>(mc::device::kFunctionAttributes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *value = known->facts->attributes[attribute];
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return result(cudaFuncSetAttribute(reinterpret_cast<const void*>(function),
                                     static_cast<cudaFuncAttribute>(attribute), value));
}

CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  if (extra != nullptr) return unsupported("cuLaunchKernelEx with `extra`");
  cudaLaunchConfig_t same{};
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
  same.gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ};
  same.blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ};
  same.dynamicSmemBytes = config->sharedMemBytes;
  same.stream = reinterpret_cast<cudaStream_t>(config->hStream);
  same.attrs = reinterpret_cast<cudaLaunchAttribute*>(config->attrs);
  same.numAttrs = config->numAttrs;
  return result(cudaLaunchKernelExC(&same, reinterpret_cast<const void*>(function), arguments));
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** arguments, void** extra) {
  CUlaunchConfig config{};
  config.gridDimX = grid_x;
  config.gridDimY = grid_y;
  config.gridDimZ = grid_z;
  config.blockDimX = block_x;
  config.blockDimY = block_y;
  config.blockDimZ = block_z;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  return cuLaunchKernelEx(&config, function, arguments, extra);
}

}  // extern "C"
