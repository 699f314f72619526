# SPDX-License-Identifier: Apache-2.0
"""What a mutant of a KernelBench task hands its result through: the least that is a kernel of its own."""

from torch.utils.cpp_extension import load_inline

own = load_inline(
    name="epilogue",
    cpp_sources="torch::Tensor copy(torch::Tensor x);",
    cuda_sources=r"""
__global__ void copy_kernel(const float* x, float* y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

torch::Tensor copy(torch::Tensor x) {
  x = x.contiguous();
  auto y = torch::empty_like(x);
  copy_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
""",
    functions=["copy"],
)
