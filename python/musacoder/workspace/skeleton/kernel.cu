// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>

// The kernel to write: this one copies its input.
__global__ void forward_kernel(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < n) y[i] = x[i];
}

torch::Tensor forward(torch::Tensor x) {
  x = x.contiguous();
  torch::Tensor y = torch::empty_like(x);
  const int64_t n = x.numel();
  const int threads = 256;
  const auto blocks = static_cast<unsigned>((n + threads - 1) / threads);
  if (n == 0) return y;
  forward_kernel<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(),
                                                                           y.data_ptr<float>(), n);
  return y;
}
