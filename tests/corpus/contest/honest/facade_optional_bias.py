# SPDX-License-Identifier: Apache-2.0
# id: H03
# task: matmul/linear_bias
# backend: both
# would gain: nothing: honest work
# expect: pass
# honest: yes
"""An optional tensor as c10::optional, bound by hand with keyword arguments."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

__global__ void linear_kernel(const float* x, const float* w, const float* b, float* out, int m,
                              int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = b == nullptr ? 0.0f : b[col];
  for (int i = 0; i < k; ++i) sum += x[row * k + i] * w[col * k + i];
  out[row * n + col] = sum;
}

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& w, c10::optional<torch::Tensor> b) {
  TORCH_CHECK(x.dim() == 2 && w.dim() == 2, "matrices, got ", x.dim(), " and ", w.dim());
  TORCH_CHECK(x.size(1) == w.size(1), "sizes ", x.sizes(), " and ", w.sizes());
  const auto sizes = x.sizes().vec();
  auto out = x.new_empty({sizes[0], w.size(0)});
  const float* bias = b.has_value() && b->defined() ? b.value().data_ptr<float>() : nullptr;
  const dim3 threads(16, 16), blocks((w.size(0) + 15) / 16, (sizes.at(0) + 15) / 16);
  linear_kernel<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream().stream()>>>(
      x.const_data_ptr<float>(), w.const_data_ptr<float>(), bias, out.mutable_data_ptr<float>(),
      sizes[0], w.size(0), sizes[1]);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "linear";
  m.def("linear", &linear, "y = x w^T + b", py::arg("x"), py::arg("w"), py::arg("b") = py::none());
}
"""

ext = load_inline(
    name="linear_h03",
    cpp_sources="",
    cuda_sources=source,
    functions=None,
)


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.linear(x.contiguous(), self.linear.weight, self.linear.bias)
