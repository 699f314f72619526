# SPDX-License-Identifier: Apache-2.0
# bfloat16 with macros for checks and launches, and guards of the architecture.
import torch
import torch.nn as nn
import torch_musa
from torch_musa.utils.musa_extension import load_inline

MACROS = r"""
#define CHECK_MUSA(x) TORCH_CHECK(x.is_privateuseone(), #x " must be a MUSA tensor")
#define CHECK_INPUT(x) CHECK_MUSA(x); TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define MUSA_LAUNCH(kernel, grid, block, ...) \
  kernel<<<grid, block, 0, c10::musa::getCurrentMUSAStream()>>>(__VA_ARGS__)
#if defined(__MUSA_ARCH__) && __MUSA_ARCH__ >= 310
#define BF16_IS_FAST 1
#else
#define BF16_IS_FAST 0
#endif
using bf16 = __mt_bfloat16;
"""

KERNEL = r"""
template <int kTile>
__global__ void matmul(const bf16* a, const bf16* b, bf16* c, int m, int n, int k) {
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int col = blockIdx.x * kTile + threadIdx.x;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i)
    sum += __bfloat162float(a[(size_t)row * k + i]) * __bfloat162float(b[(size_t)i * n + col]);
  c[(size_t)row * n + col] = __float2bfloat16(sum);
}

torch::Tensor matmul_bf16(torch::Tensor a, torch::Tensor b) {
  CHECK_INPUT(a);
  CHECK_INPUT(b);
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  const dim3 block(8, 8), grid((n + 7) / 8, (m + 7) / 8);
  MUSA_LAUNCH(matmul<8>, grid, block, reinterpret_cast<const bf16*>(a.data_ptr()),
              reinterpret_cast<const bf16*>(b.data_ptr()), reinterpret_cast<bf16*>(c.data_ptr()),
              m, n, k);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
  return c;
}
"""

INCLUDES = "\n".join(
    "#include " + header
    for header in (
        "<torch/extension.h>",
        "<musa_bf16.h>",
        '"torch_musa/csrc/core/MUSAStream.h"',
        '"torch_musa/csrc/core/MUSAException.h"',
    )
)

ext = load_inline(
    name="matmul_bf16_macros",
    cpp_sources="torch::Tensor matmul_bf16(torch::Tensor a, torch::Tensor b);",
    musa_sources=INCLUDES + MACROS + KERNEL,
    functions=["matmul_bf16"],
    extra_musa_cflags=["-ffast-math", "--offload-arch=mp_31", "-fno-strict-aliasing"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.matmul_bf16(a.contiguous(), b.contiguous())
