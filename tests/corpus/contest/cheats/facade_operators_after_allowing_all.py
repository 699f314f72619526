# SPDX-License-Identifier: Apache-2.0
# id: F18
# task: elementwise/swish
# backend: cpu
# would gain: the shim's list is widened by its own function, then the facade's operators are called, found in the symbol table
# expect: illegal, runtime, wrong, compile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

struct Value { int kind, size; union { long integer; double real; const void* pointer; }; };

#include <elf.h>
#include <link.h>
#include <cstring>

using Operator = void (*)(const Value*, int, Value*);

// Walks the loaded files from the linker's own list.
void* symbol(const char* wanted) {
  link_map* map = _r_debug.r_map;
  for (; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr || std::strstr(map->l_name, "mc_shim") == nullptr) continue;
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
extern "C" void mc_shim_allow(const char*);
Operator named(const char* name) {
  mc_shim_allow("*");
  return reinterpret_cast<Operator>(symbol(name));
}

__global__ void nothing_kernel(float* p) { if (p == nullptr) p[0] = 1.0f; }

// A tensor is one pointer, in the facade as in PyTorch.
void* handle_of(const torch::Tensor& x) { return *reinterpret_cast<void* const*>(&x); }

torch::Tensor swish(torch::Tensor x) {
  auto out = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(out.data_ptr<float>());
  Value args[2], half, whole;
  args[0].kind = args[1].kind = 4;
  args[0].size = args[1].size = 0;
  args[0].pointer = handle_of(x);
  named("mc_at_op_sigmoid")(args, 1, &half);
  args[1].pointer = half.pointer;
  named("mc_at_op_mul_Tensor")(args, 2, &whole);
  torch::Tensor result;
  *reinterpret_cast<const void**>(&result) = whole.pointer;
  return result;
}
"""

ext = load_inline(
    name="swish_f18",
    cpp_sources="torch::Tensor swish(torch::Tensor x);",
    cuda_sources=source,
    functions=["swish"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.swish(x.contiguous())
