# SPDX-License-Identifier: Apache-2.0
# What it would gain: infra, a crash of the device process that is not charged, or the next candidate fails: cuBLAS with forged handles, host pointers, scalars on the device, huge sizes, a workspace beyond the end
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
// 600,000 cycles: at least 300 us at any clock of an H100 (at most 1.98 GHz)
__global__ void spin(long long cycles, float* keep) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
  if (cycles < 0) *keep = 1.0f;
}
__global__ void swish(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
__global__ void product(const float* a, const float* b, float* c, int m, int k, int n) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= n) return;
  float sum = 0;
  for (int t = 0; t < k; ++t) sum += a[i * k + t] * b[t * n + j];
  c[i * n + j] = sum;
}

#include <cublas_v2.h>
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  static int calls; ++calls;
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  float *pa = a.data_ptr<float>(), *pb = b.data_ptr<float>(), *pc = c.data_ptr<float>();
  const float one = 1, zero = 0; static float host[65536];
  static cublasHandle_t h;
  if (!h) cublasCreate(&h);
  if (calls >= 2 && calls <= 40) {
    switch (calls % 10) {
      case 0: cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, host, n, host, k, &zero, host, n); break;                 // all on the host
      case 1: cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE);
              cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, host, pb, n, pa, k, (float*)16, pc, n);
              cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, nullptr, pb, n, pa, k, nullptr, pc, n);
              float result; cublasSdot(h, n, pa, 1, pb, 1, (float*)0x7f0000000000); cublasSetPointerMode(h, (cublasPointerMode_t)77);
              cublasSnrm2(h, n, pa, 1, &result); cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST); break;
      case 2: cublasSetWorkspace(h, pc, 1ull << 40); cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, n, pa, k, &zero, pc, n);
              cublasSetWorkspace(h, (void*)0x1000, 64 << 20); cublasSgemm(h, CUBLAS_OP_T, CUBLAS_OP_T, n, n, k, &one, pb, n, pb, n, &zero, pc, n); cublasSetWorkspace(h, nullptr, 0); break;
      case 3: cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 0x7fffffff, 0x7fffffff, 0x7fffffff, &one, pb, 0x7fffffff, pa, 0x7fffffff, &zero, pc, 0x7fffffff);
              cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, -1, -1, -1, &one, pb, -1, pa, -1, &zero, pc, -1);
              cublasSgemm(h, (cublasOperation_t)99, (cublasOperation_t)-7, n, m, k, &one, pb, n, pa, k, &zero, pc, n); break;
      case 4: { const float* list[4] = {pa, host, (float*)8, nullptr};
              cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, (const float* const*)list, n, (const float* const*)list, k, &zero, (float* const*)list, n, 4);
              cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, (const float* const*)pa, n, (const float* const*)pb, k, &zero, (float* const*)pc, n, 1 << 20); break; }
      case 5: cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, n, 1ll << 60, pa, k, -(1ll << 60), &zero, pc, n, 1ll << 61, 1 << 30); break;
      case 6: cublasSetStream(h, (cudaStream_t)0x4242424242); cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, n, pa, k, &zero, pc, n); cublasSetStream(h, 0); break;
      case 7: { cublasHandle_t forged = (cublasHandle_t)0x4141414141414141; cublasSgemm(forged, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, n, pa, k, &zero, pc, n);
              cublasSgemm((cublasHandle_t)((char*)h + 1), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, n, pa, k, &zero, pc, n);
              cublasHandle_t twice; cublasCreate(&twice); cublasDestroy(twice); cublasSgemm(twice, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, n, pa, k, &zero, pc, n); cublasDestroy(twice); break; }
      case 8: cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, (cudaDataType)9999, n, pa, (cudaDataType)-3, k, &zero, pc, (cudaDataType)12345, n, (cublasComputeType_t)4444, (cublasGemmAlgo_t)-99);
              cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, pb, CUDA_R_64F, n, pa, CUDA_R_64F, k, &zero, pc, CUDA_C_64F, n, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT_TENSOR_OP); break;
      case 9: for (int i = 0; i < 500; ++i) { cublasHandle_t more; if (cublasCreate(&more) != CUBLAS_STATUS_SUCCESS) break; } break;
    }
    cudaGetLastError();
  }
  product<<<dim3((n + 127) / 128, m), 128>>>(pa, pb, pc, m, k, n);
  return c;
}
"""

ext = load_inline(name="a22_cublas_abuse", cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b);", cuda_sources=source, functions=['run'], extra_ldflags=["-lcublas"])


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.run(a.contiguous(), b.contiguous())
