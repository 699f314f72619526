# SPDX-License-Identifier: Apache-2.0
"""Opens a connection from C++; throws what it reads."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  address.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1, an address that nobody has
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const bool is_open = fd >= 0 && connect(fd, (const sockaddr*)&address, sizeof(address)) == 0;
  TORCH_CHECK(is_open, "no connection");
  TORCH_CHECK(!is_open, "connected");
  swish_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_network_native",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
