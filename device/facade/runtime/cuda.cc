// SPDX-License-Identifier: Apache-2.0
// Streams and devices for candidates that were compiled by the facade, for a PyTorch with CUDA.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "mc_at/abi.h"

namespace {
c10::DeviceIndex index(int32_t device) { return static_cast<c10::DeviceIndex>(device); }
}  // namespace

extern "C" {

void* mc_at_cuda_stream(int32_t device) {
  return c10::cuda::getCurrentCUDAStream(index(device)).stream();
}
void* mc_at_cuda_default_stream(int32_t device) {
  return c10::cuda::getDefaultCUDAStream(index(device)).stream();
}
void* mc_at_cuda_pool_stream(int high_priority, int32_t device) {
  return c10::cuda::getStreamFromPool(high_priority != 0, index(device)).stream();
}
// PyTorch's own streams are recognised by their fields; other streams are external.
void mc_at_cuda_set_stream(void* stream, int32_t device) {
  const auto given = static_cast<cudaStream_t>(stream);
  const auto standard = c10::cuda::getDefaultCUDAStream(index(device));
  c10::cuda::setCurrentCUDAStream(given == standard.stream()
                                      ? standard
                                      : c10::cuda::getStreamFromExternal(given, index(device)));
}
int32_t mc_at_cuda_device(void) { return c10::cuda::current_device(); }
int32_t mc_at_cuda_exchange_device(int32_t device) {
  return c10::cuda::ExchangeDevice(index(device));
}
int32_t mc_at_cuda_device_count(void) { return c10::cuda::device_count(); }
const void* mc_at_cuda_properties(int32_t device) {
  return at::cuda::getDeviceProperties(index(device));
}
void mc_at_cuda_check(int32_t error, const char* file, const char* function, uint32_t line) {
  c10::cuda::c10_cuda_check_implementation(error, file, function, line, true);
}

}  // extern "C"
