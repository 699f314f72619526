// SPDX-License-Identifier: Apache-2.0
//
// The driver's calls about the device and the context.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <random>

#include "ptx_driver/description.h"
#include "ptx_driver/driver.h"

using mc::ptx_driver::Driver;

namespace {

constexpr int kVersion = 13000;

struct ErrorText {
  CUresult error;
  const char* name;
};

constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
};

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return Driver::get().start(); }

CUresult cuDeviceGet(CUdevice* device, int index) {
  *device = 0;
  return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&Driver::get());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }

CUresult cuCtxGetDevice(CUdevice* device) { return cuDeviceGet(device, 0); }

CUresult cuCtxSynchronize() {
  Driver::get().order.host_waits_for_all();
  return Driver::get().fault();
}

CUresult cuDriverGetVersion(int* version) {
  *version = kVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = mc::ptx_driver::kMemoryBytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<size_t>(bytes), "%s", Driver::get().name.c_str());
  return CUDA_SUCCESS;
}

// No two devices have the same UUID.
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
  static const uint64_t numbers[] = {std::random_device()(), std::random_device()(),
                                     std::random_device()(), std::random_device()()};
  for (size_t k = 0; k < sizeof *uuid; ++k) {
    uuid->bytes[k] = static_cast<char>(numbers[k / 4] >> 8 * (k % 4));
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int bytes, CUdevice) {
  std::snprintf(text, static_cast<size_t>(bytes), "0000:1B:00.0");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_WARP_SIZE ? Driver::get().warp_threads
                                                      : Driver::get().description.at(attribute);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  const auto* found = std::ranges::find(kErrors, error, &ErrorText::error);
  *name = found == std::end(kErrors) ? nullptr : found->name;
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // extern "C"
