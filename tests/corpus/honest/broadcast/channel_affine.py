# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

// A block works on one plane (one channel of one image), so scale and shift are read once.
__global__ void channel_affine_kernel(const float* __restrict__ x, const float* __restrict__ scale,
                                      const float* __restrict__ shift, float* __restrict__ out,
                                      int channels, int plane_size) {
  const int plane = blockIdx.x;
  const int c = plane % channels;
  const float a = __ldg(scale + c);
  const float b = __ldg(shift + c);
  const size_t offset = static_cast<size_t>(plane) * plane_size;
  for (int i = threadIdx.x; i < plane_size; i += blockDim.x) {
    out[offset + i] = fmaf(x[offset + i], a, b);
  }
}

torch::Tensor channel_affine(torch::Tensor x, torch::Tensor scale, torch::Tensor shift) {
  TORCH_CHECK(x.dim() == 4, "x must have four dimensions");
  TORCH_CHECK(scale.numel() == x.size(1) && shift.numel() == x.size(1), "one number a channel");
  auto out = torch::empty_like(x);
  const int channels = x.size(1);
  const int plane_size = x.size(2) * x.size(3);
  const int num_planes = x.size(0) * channels;
  channel_affine_kernel<<<num_planes, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), scale.data_ptr<float>(), shift.data_ptr<float>(),
      out.data_ptr<float>(), channels, plane_size);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

cpp_source = """
torch::Tensor channel_affine(torch::Tensor x, torch::Tensor scale, torch::Tensor shift);
"""

channel_affine_ext = load_inline(
    name="channel_affine_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["channel_affine"],
)


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return channel_affine_ext.channel_affine(x.contiguous(), self.scale, self.shift)
