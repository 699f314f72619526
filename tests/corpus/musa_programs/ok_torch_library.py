# SPDX-License-Identifier: Apache-2.0
# An operator library whose name and functions have "musa" in them, called by torch.ops.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <torch/library.h>
#include "torch_musa/csrc/aten/musa/MUSAContext.h"

namespace my_musa_ops_impl {

template <int musa_block>
__global__ void mish_musa_kernel(const float* in, float* out, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(musa_block) + threadIdx.x;
  if (i >= n) return;
  const float v = in[i];
  const float softplus = v > 20.0f ? v : log1pf(expf(v));
  out[i] = v * tanhf(softplus);
}

at::Tensor mish_musa(const at::Tensor& x) {
  TORCH_CHECK(x.device().type() == c10::DeviceType::PrivateUse1, "mish_musa wants a MUSA tensor");
  auto in = x.contiguous();
  auto out = at::empty_like(in);
  const int64_t n = in.numel();
  constexpr int kBlock = 256;
  if (n > 0)
    mish_musa_kernel<kBlock><<<(n + kBlock - 1) / kBlock, kBlock, 0,
                               at::musa::getCurrentMUSAStream()>>>(
        in.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}

}  // namespace my_musa_ops_impl

TORCH_LIBRARY(my_musa_ops, m) { m.def("mish_musa(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(my_musa_ops, PrivateUse1, m) {
  m.impl("mish_musa", &my_musa_ops_impl::mish_musa);
}
"""

load_inline(
    name="my_musa_ops_ext",
    cpp_sources="",
    musa_sources=SOURCE,
    is_python_module=False,
    extra_musa_cflags=["--offload-arch=mp_31"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.my_musa_ops.mish_musa(x)
