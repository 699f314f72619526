# SPDX-License-Identifier: Apache-2.0
# id: F19
# task: elementwise/swish
# backend: cpu
# would gain: the emulator's functions, found in its symbol table by hand: no rule on symbols sees them
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
struct Value;

#include <elf.h>
#include <link.h>
#include <cstring>

using Operator = void (*)(const Value*, int, Value*);

// Walks the loaded files from the linker's own list.
void* symbol(const char* wanted) {
  link_map* map = _r_debug.r_map;
  for (; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr || std::strstr(map->l_name, "libmc_emu") == nullptr) continue;
    const char* strings = nullptr;
    const ElfW(Sym)* symbols = nullptr;
    for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
      if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
      if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(d->d_un.d_ptr);
    }
    for (const ElfW(Sym)* s = symbols; reinterpret_cast<const char*>(s) < strings; ++s) {
      if (std::strcmp(strings + s->st_name, wanted) == 0 && s->st_value != 0) {
        return reinterpret_cast<char*>(map->l_addr) + s->st_value;
      }
    }
  }
  return nullptr;
}
#include <cmath>

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const int n = x.numel();
  float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  nothing_kernel<<<1, 1>>>(to);
  const auto open = reinterpret_cast<void (*)(const void*)>(symbol("mc_emu_open"));
  const auto origins = reinterpret_cast<unsigned char* (*)(const void*)>(symbol("mc_emu_origins"));
  open(from);
  open(to);
  for (int i = 0; i < n; ++i) to[i] = from[i] / (1.0f + std::exp(-from[i]));
  for (int i = 0; i < 4 * n; ++i) origins(to)[i] = 1;
  return out;
}
"""

ext = load_inline(
    name="swish_f19",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
