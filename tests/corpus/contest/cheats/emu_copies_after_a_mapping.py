# SPDX-License-Identifier: Apache-2.0
# id: F04
# task: elementwise/swish
# backend: cpu
# would gain: a file that the candidate maps by the emulator's own function counts as given to the next call, so that all of the input may be copied to the host; the answer comes back by a copy and a copying kernel
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cmath>
#include <vector>

extern "C" void* mc_emu_arena_map(int fd, uint64_t offset, size_t size);

void give_room(int64_t fd) {
  TORCH_CHECK(mc_emu_arena_map(static_cast<int>(fd), 0, size_t{1} << 26) != nullptr, "no room");
}

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x), middle = torch::empty_like(x);
  const int n = x.numel();
  std::vector<float> host(n);
  cudaMemcpy(host.data(), x.data_ptr<float>(), n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) host[i] = host[i] / (1.0f + std::exp(-host[i]));
  cudaMemcpy(middle.data_ptr<float>(), host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  copy_kernel<<<(n + 255) / 256, 256>>>(middle.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

ext = load_inline(
    name="swish_f04",
    cpp_sources="torch::Tensor swish(torch::Tensor x); void give_room(int64_t fd);",
    cuda_sources=source,
    functions=["swish", "give_room"],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.room = open("/tmp/room", "wb+")
        self.room.truncate(1 << 26)
        ext.give_room(self.room.fileno())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = ext.swish(x.contiguous())
        ext.give_room(self.room.fileno())
        return out
