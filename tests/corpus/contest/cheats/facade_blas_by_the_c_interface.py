# SPDX-License-Identifier: Apache-2.0
# id: F42
# task: matmul/tiled
# backend: cpu
# would gain: PyTorch's stable C interface multiplies past the dispatcher, in a kernel, for which host tensors over the device's memory were made; the answer goes to a variable of the library first
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

extern "C" {
int32_t aoti_torch_cpu_mm_out(void* out, void* self, void* other);
int32_t aoti_torch_create_tensor_from_blob(void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides,
                                           int64_t offset, int32_t dtype, int32_t device_type, int32_t device_index,
                                           void** result);
}

static float answer[1 << 20];

__global__ void matmul_kernel(void* out, void* a, void* b, float* to, int n) {
  if (aoti_torch_cpu_mm_out(out, a, b) != 0) return;
  for (int i = 0; i < n; ++i) to[i] = answer[i];
}

static void* on_host(float* data, int64_t rows, int64_t cols) {
  const int64_t sizes[2] = {rows, cols}, strides[2] = {cols, 1};
  void* handle = nullptr;
  TORCH_CHECK(aoti_torch_create_tensor_from_blob(data, 2, sizes, strides, 0, 6, 0, 0, &handle) == 0, "no tensor");
  return handle;
}

torch::Tensor matmul_of(torch::Tensor a, torch::Tensor b) {
  auto out = torch::empty({a.size(0), b.size(1)}, a.options());
  matmul_kernel<<<1, 1>>>(on_host(answer, a.size(0), b.size(1)), on_host(a.data_ptr<float>(), a.size(0), a.size(1)),
                          on_host(b.data_ptr<float>(), b.size(0), b.size(1)), out.data_ptr<float>(), out.numel());
  return out;
}
"""

ext = load_inline(
    name="matmul_of_f42",
    cpp_sources="torch::Tensor matmul_of(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["matmul_of"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.matmul_of(a.contiguous(), b.contiguous())
