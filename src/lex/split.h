// SPDX-License-Identifier: Apache-2.0
//
// Splits CUDA source as nvcc does, into what its host compiler and its device compiler would see,
// so that g++ and NVRTC can compile it in a sixth of nvcc's time (compile/quick.h).
//
//   __global__ void k(const float* x, int n) {...}
//     host:    the same declaration, with a body that asks the runtime for the launch
//     device:  as it stands
//   __device__ float f(float x) {...}         host: nothing;  device: as it stands
//   __host__ __device__ functions, types, constants that are numbers, macros: both
//   constexpr int f(int x) {...}              both; for the device marked __host__ __device__,
//                                             which is what --expt-relaxed-constexpr means
//   other functions and variables             device: nothing
//   k<T><<<g, b, n, s>>>(x, y)                host: a call of the kernel behind its configuration
//
// Both texts keep the source's lines, and what stays keeps its column but for the rest of a line
// that holds a launch.  The split errs on one side: what it refuses or cuts wrongly does not
// compile, and then nvcc decides over the whole source (compile/cuda_toolchain.h).  A source that
// nvcc refuses must not compile: a call of a function that the other side alone has finds none,
// and what NVRTC or g++ would take (a kernel that is called, a constant array of the host) is
// refused here.
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
  std::vector<std::string> device_headers{};  // To be included before `device`: "<mma.h>".
  std::vector<std::string> kernels{};  // Qualified names, "ns::k"; templates without arguments.
  // Why the source is not split, for logs: "a static kernel"; "" where it is.
  std::string refusal{};
};

// Total: text that is no C++ is refused.  `macros` are those that both sides have alike before the
// source, by which it may decide.  REQUIRES: source.size() <= kSourceBytesMax.
Split split_cuda(std::string_view source, const std::set<std::string>& macros = {});

}  // namespace mc::lex

#endif  // MC_LEX_SPLIT_H_
