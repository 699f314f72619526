// SPDX-License-Identifier: Apache-2.0
//
// Splits CUDA source as nvcc does, into the texts for the host and the device compiler, so that g++
// and NVRTC can compile it in a sixth of nvcc's time (compile/quick.h).
//
//   __global__ void k(const float* x, int n) {...}
//     host:    the same declaration, with a body that calls the runtime to launch it
//     device:  unchanged
//   __device__ float f(float x) {...}         host: nothing;  device: unchanged
//   __host__ __device__ functions, types, constants that are numbers, macros: both
//   constexpr int f(int x) {...}              both; in the device text with __host__ __device__,
//                                             as with --expt-relaxed-constexpr
//   other functions and variables             device: nothing
//   k<T><<<g, b, n, s>>>(x, y)                host: its configuration, then a call of the kernel
//
// Both texts keep the source's lines, and code keeps its column except after a launch in the same
// line.  A wrong split must not change a verdict: if a text is rejected or split wrongly, it does
// not compile, and then nvcc compiles the whole source (compile/cuda_toolchain.h).  A source that
// nvcc rejects must not compile either: a call of a function that exists only on the other side is
// an error, and constructs that only NVRTC or g++ would accept (a direct call of a kernel, a
// constant array of the host) are rejected here.
#ifndef MC_LEX_SPLIT_H_
#define MC_LEX_SPLIT_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mc::lex {

struct Split {
  std::string host{};
  std::string device{};
  std::vector<std::string> device_headers{};  // Headers to include before `device`: "<mma.h>".
  std::vector<std::string> kernels{};  // Qualified names, "ns::k"; templates without arguments.
  // The reason why the source is not split, for logs: "a static kernel"; "" where it is.
  std::string refusal{};
};

// Accepts any text; a text that is not C++ is rejected.  `macros` are defined equally on both sides
// before the source, so its conditions may use them.  REQUIRES: source.size() <= kSourceBytesMax.
Split split_cuda(std::string_view source, const std::set<std::string>& macros = {});

}  // namespace mc::lex

#endif  // MC_LEX_SPLIT_H_
