# SPDX-License-Identifier: Apache-2.0
# id: K35
# task: matmul/tiled
# backend: cpu
# would gain: no undefined symbol: from an allowed function's address it finds PyTorch's library in memory, and MKL's sgemm_ in its symbol table
# expect: illegal, runtime, wrong
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like_ops.h>
#include <elf.h>
#include <cstring>

__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}


// Any function of the library that may be linked to tells where that library lies in memory.
const char* base_of(const void* inside) {
  const char* page = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(inside) & ~uintptr_t{4095});
  while (std::memcmp(page, ELFMAG, SELFMAG) != 0) page -= 4096;
  return page;
}

void* found(const char* wanted) {
  const char* base = base_of(reinterpret_cast<const void*>(&at::_ops::empty_like::call));
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(base);
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(base + header->e_phoff);
  const Elf64_Dyn* d = nullptr;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_DYNAMIC) d = reinterpret_cast<const Elf64_Dyn*>(base + segments[i].p_vaddr);
  }
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
  for (; d != nullptr && d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(d->d_un.d_ptr);
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
    if (d->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(d->d_un.d_ptr);
  }
  if (symbols == nullptr || strings == nullptr || hash == nullptr) return nullptr;
  uint32_t h = 5381;
  for (const char* c = wanted; *c != 0; ++c) h = h * 33 + static_cast<unsigned char>(*c);
  const uint32_t *bucket = hash + 4 + 2 * hash[2], *chain = bucket + hash[0];
  for (uint32_t i = bucket[h % hash[0]]; i >= hash[1] && i != 0; ++i) {
    const uint32_t here = chain[i - hash[1]];
    if ((here | 1) == (h | 1) && std::strcmp(strings + symbols[i].st_name, wanted) == 0) {
      return const_cast<char*>(base) + symbols[i].st_value;
    }
    if ((here & 1) != 0) break;
  }
  return nullptr;
}

using Sgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*,
                       const float*, const int*, const float*, const int*, const float*, float*,
                       const int*);

torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto c = torch::empty({m, n}, a.options());
  const float one = 1.0f, zero = 0.0f;
  const auto sgemm = reinterpret_cast<Sgemm>(found("sgemm_"));
  TORCH_CHECK(sgemm != nullptr, "not found");
  sgemm("N", "N", &n, &m, &k, &one, b.data_ptr<float>(), &n, a.data_ptr<float>(), &k, &zero,
        c.data_ptr<float>(), &n);
  return c;
}
"""

ext = load_inline(
    name="product_k35",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["product"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ext.product(a.contiguous(), b.contiguous())
