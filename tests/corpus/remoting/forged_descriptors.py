# SPDX-License-Identifier: Apache-2.0
# What it would gain: infra, a crash of the device process that is not charged, or the next candidate fails: cuBLASLt's opaque layouts and algorithms with random words; cuDNN with impossible sizes and descriptors
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

#include <cublasLt.h>
#include <cudnn.h>
static uint64_t state = 88172645463325252ull;
static uint64_t random_word() { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  static int calls; ++calls;
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  float *pa = a.data_ptr<float>(), *pb = b.data_ptr<float>(), *pc = c.data_ptr<float>();
  if (calls >= 2 && calls <= 30) {
    const float one = 1, zero = 0;
    static cublasLtHandle_t lt; if (!lt) cublasLtCreate(&lt);
    cublasLtMatmulDesc_t d = nullptr; cublasLtMatrixLayout_t A = nullptr, B = nullptr, C = nullptr; cublasLtMatmulPreference_t pref = nullptr;
    cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&A, CUDA_R_32F, n, k, n); cublasLtMatrixLayoutCreate(&B, CUDA_R_32F, k, m, k); cublasLtMatrixLayoutCreate(&C, CUDA_R_32F, n, m, n);
    cublasLtMatmulPreferenceCreate(&pref);
    size_t workspace = 1ull << 40; cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, 8);
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS; void* bias = (void*)random_word();
    if (calls % 3 == 1) { cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4); cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, 8); }
    cublasLtMatmulDescSetAttribute(d, (cublasLtMatmulDescAttributes_t)random_word(), &workspace, 1ull << 33);
    cublasLtMatmulHeuristicResult_t result[4]{}; int got = 0;
    cublasLtMatmulAlgoGetHeuristic(lt, d, A, B, C, C, pref, 4, result, &got);
    cublasLtMatmulAlgoGetHeuristic(lt, d, A, B, C, C, pref, 0x7fffffff, result, &got);
    for (int i = 0; i < 50; ++i) {
      cublasLtMatmulAlgo_t algo = result[0].algo;
      for (int w = 0; w < 3; ++w) algo.data[random_word() % 8] ^= 1ull << (random_word() % 64);
      cublasLtMatmul(lt, d, &one, pb, A, pa, B, &zero, pc, C, pc, C, &algo, i % 2 ? pc : nullptr, i % 2 ? 1ull << 40 : 0, i % 5 ? 0 : (cudaStream_t)random_word());
    }
    // words of the opaque layout: on the caller's side they are plain memory
    for (int i = 0; i < 50; ++i) {
      cublasLtMatrixLayoutOpaque_t forged; memcpy(&forged, A, sizeof forged);
      ((uint64_t*)&forged)[random_word() % (sizeof forged / 8)] = random_word();
      cublasLtMatmul(lt, d, &one, pb, &forged, pa, B, &zero, pc, C, pc, C, nullptr, nullptr, 0, 0);
    }
    cublasLtMatmul(lt, (cublasLtMatmulDesc_t)A, &one, pb, (cublasLtMatrixLayout_t)d, pa, (cublasLtMatrixLayout_t)pref, &zero, pc, C, pc, C, nullptr, nullptr, 0, 0);   // kinds exchanged
    cublasLtMatrixLayoutDestroy(A); cublasLtMatmul(lt, d, &one, pb, A, pa, B, &zero, pc, C, pc, C, nullptr, nullptr, 0, 0);                                            // used after free
    static cudnnHandle_t dnn; if (!dnn) cudnnCreate(&dnn);
    cudnnTensorDescriptor_t t = nullptr, u = nullptr; cudnnCreateTensorDescriptor(&t); cudnnCreateTensorDescriptor(&u);
    int dims[8] = {0x7fffffff, 0x7fffffff, 0x7fffffff, 2, -1, 0, 1, 1}, strides[8] = {-1, 0x7fffffff, 1, 0, -5, 1, 1, 1};
    cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 5, dims, strides); cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 0x7fffffff, dims, strides);
    cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 32768, 1, 1, 32768); cudnnSetTensor4dDescriptor(u, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 32768, 1, 1, 32768);
    cudnnSoftmaxForward(dnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, t, pa, &zero, u, (void*)64);
    cudnnFilterDescriptor_t f; cudnnConvolutionDescriptor_t conv; cudnnCreateFilterDescriptor(&f); cudnnCreateConvolutionDescriptor(&conv);
    cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 64, 256, 256); cudnnSetTensor4dDescriptor(u, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 64, 254, 254);
    cudnnSetFilter4dDescriptor(f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 64, 64, 3, 3); cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    for (int algo = -2; algo < 12; ++algo) cudnnConvolutionForward(dnn, &one, t, pa, f, pb, conv, (cudnnConvolutionFwdAlgo_t)algo, pc, algo % 2 ? 1ull << 50 : 0, &zero, u, pc);
    cudnnBackendDescriptor_t back = nullptr; cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &back);
    int64_t shape[4] = {1, 2, 3, 4};
    cudnnBackendSetAttribute(back, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 1ll << 40, shape); cudnnBackendSetAttribute(back, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, -1, shape);
    cudnnBackendSetAttribute(back, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 4, shape); cudnnBackendFinalize(back);
    int64_t counted; cudnnBackendGetAttribute(back, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, &counted, shape);
    cudnnBackendDestroyDescriptor(back); cudnnBackendFinalize(back);
    cudaGetLastError();
  }
  product<<<dim3((n + 127) / 128, m), 128>>>(pa, pb, pc, m, k, n);
  return c;
}
"""

ext = load_inline(name="a23_forged_descriptors", cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b);", cuda_sources=source, functions=['run'], extra_ldflags=["-lcublas", "-lcublasLt", "-lcudnn"])


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.run(a.contiguous(), b.contiguous())
