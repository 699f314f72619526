# SPDX-License-Identifier: Apache-2.0
# Half precision by templates; parameters, namespaces and constants have "musa" in their names.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline

musa_src = r"""
#include <torch/extension.h>
#include <musa_fp16.h>
#include "torch_musa/csrc/aten/musa/MUSAContext.h"

namespace ops::musa_kernels {

enum class MusaMode { kPlain, kHard };
constexpr int kMusaThreads = 192;

template <typename musa_t>
struct MusaTraits;
template <>
struct MusaTraits<half> {
  static __device__ float load(half v) { return __half2float(v); }
  static __device__ half store(float v) { return __float2half(v); }
};

template <typename musa_t, MusaMode musa_mode, int MUSA_THREADS>
__global__ void activation(const musa_t* __restrict__ in, musa_t* __restrict__ out, int n) {
  const int i = blockIdx.x * MUSA_THREADS + threadIdx.x;
  if (i >= n) return;
  const float v = MusaTraits<musa_t>::load(in[i]);
  float r = v;
  if constexpr (musa_mode == MusaMode::kHard) r = v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f;
  out[i] = MusaTraits<musa_t>::store(r);
}

}  // namespace ops::musa_kernels

torch::Tensor musa_hard_swish(torch::Tensor x_musa) {
  using namespace ops::musa_kernels;
  TORCH_CHECK(x_musa.is_musa(), "x must be on the musa device");
  TORCH_CHECK(x_musa.device().type() == at::musa::kMUSA);
  auto y_musa = torch::empty(x_musa.sizes(), x_musa.options().device(at::musa::kMUSA));
  const int n = x_musa.numel();
  activation<half, MusaMode::kHard, kMusaThreads>
      <<<(n + kMusaThreads - 1) / kMusaThreads, kMusaThreads, 0,
         at::musa::getCurrentMUSAStream()>>>(
          reinterpret_cast<const half*>(x_musa.data_ptr<at::Half>()),
          reinterpret_cast<half*>(y_musa.data_ptr<at::Half>()), n);
  return y_musa;
}
"""
musa_ext = load_inline(
    name="musa_hard_swish_ext",
    cpp_sources="torch::Tensor musa_hard_swish(torch::Tensor x_musa);",
    musa_sources=musa_src,
    functions=["musa_hard_swish"],
    with_musa=True,
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return musa_ext.musa_hard_swish(x.contiguous())
