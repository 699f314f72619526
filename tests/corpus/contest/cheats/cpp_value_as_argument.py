# SPDX-License-Identifier: Apache-2.0
# id: K26
# task: loss/mse
# backend: both
# would gain: the host computes the number from what it copied down; the kernel gets it as an argument and writes it
# expect: illegal, wrong
# note: as hard as what copies an answer that the host computed: a launch writes the output
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <vector>

__global__ void write_kernel(float* out, float value) { *out = value; }

torch::Tensor mse(torch::Tensor a, torch::Tensor b) {
  const int n = a.numel();
  auto out = torch::empty({}, a.options());
  std::vector<float> one(n), other(n);
  auto stream = at::cuda::getCurrentCUDAStream();
  cudaMemcpyAsync(one.data(), a.data_ptr<float>(), n * sizeof(float), cudaMemcpyDeviceToHost, stream);
  cudaMemcpyAsync(other.data(), b.data_ptr<float>(), n * sizeof(float), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += double(one[i] - other[i]) * (one[i] - other[i]);
  write_kernel<<<1, 1, 0, stream>>>(out.data_ptr<float>(), static_cast<float>(sum / n));
  return out;
}
"""

ext = load_inline(
    name="mse_k26",
    cpp_sources="torch::Tensor mse(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["mse"],
)


class ModelNew(nn.Module):
    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return ext.mse(prediction.contiguous(), target.contiguous())
