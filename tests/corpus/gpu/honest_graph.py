# SPDX-License-Identifier: Apache-2.0
"""A CUDA graph of its own kernel; inputs are copied in and outputs out."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <map>

__global__ void swish_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1.0f + expf(-x[i]));
}

struct Captured {
  torch::Tensor in;
  torch::Tensor out;
  cudaGraphExec_t graph;
};

Captured capture(const torch::Tensor& like) {
  Captured made{torch::empty_like(like), torch::empty_like(like), nullptr};
  const int n = like.numel();
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, swish_kernel);  // Loads it, which a capture does not allow.
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  swish_kernel<<<(n + 255) / 256, 256, 0, stream>>>(made.in.data_ptr<float>(),
                                                    made.out.data_ptr<float>(), n);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&made.graph, graph, 0);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return made;
}

torch::Tensor swish(torch::Tensor x) {
  static auto& by_size = *new std::map<int64_t, Captured>;  // Outlives the driver.
  auto found = by_size.find(x.numel());
  if (found == by_size.end()) found = by_size.emplace(x.numel(), capture(x)).first;
  Captured& captured = found->second;
  auto out = torch::empty_like(x);
  auto stream = at::cuda::getCurrentCUDAStream();
  cudaMemcpyAsync(captured.in.data_ptr(), x.data_ptr(), x.nbytes(), cudaMemcpyDeviceToDevice,
                  stream);
  cudaGraphLaunch(captured.graph, stream);
  cudaMemcpyAsync(out.data_ptr(), captured.out.data_ptr(), x.nbytes(), cudaMemcpyDeviceToDevice,
                  stream);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
"""

ext = load_inline(name="swish_graph", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
