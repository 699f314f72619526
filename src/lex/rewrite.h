// SPDX-License-Identifier: Apache-2.0
//
// Makes CUDA C++ source into C++ that g++ compiles against the CPU emulator (emu/).  Only what is
// no C++ is changed, and a few names of the CUDA device; everything else stays as it is, byte for
// byte, and so does the number of lines, so that compiler messages point at the candidate's own
// lines.
//
//   K<T><<<g, b, n, s>>>(x, y)
//     ::mc_emu::launch(::mc_emu::Config(g, b, n, s), "K<T>",
//                      [=](auto... mc_a) MC_EMU_CALL { K<T>(mc_a...); }, x, y)
//   extern __shared__ float buffer[];     in a function:
//     float* buffer = static_cast<float*>(::mc_emu::dynamic_shared());
//                                         outside of one:
//     static ::mc_emu::DynamicShared<float> buffer;
//   asm("mov.u32 %0, %%laneid;" : "=r"(lane));
//     ::mc_emu::ptx("mov.u32 %0, %%laneid;", __LINE__, 0, ::mc_emu::ptx_output(lane));
//   (void*)kernel                         where `kernel` is marked __global__:
//     ::mc_emu::kernel_pointer(kernel)
//   __launch_bounds__(n) void k(float* x) {
//     __launch_bounds__(n) void k(float* x) { ::mc_emu::check_launch_bounds(n);
//   is_cuda, kCUDA, DeviceType::CUDA, Device("cuda")
//     is_privateuseone, kPrivateUse1, DeviceType::PrivateUse1, Device("privateuseone")
//
// Text in comments and other strings is never touched.  Launches in macros are rewritten where the
// macro is defined.  A callee is moved behind its configuration, so a callee over several lines
// ends up on one; the line ends stay where they were.
#ifndef MC_LEX_REWRITE_H_
#define MC_LEX_REWRITE_H_

#include <string>
#include <string_view>
#include <vector>

#include "lex/unsupported.h"

namespace mc::lex {

struct Rewritten {
  std::string text;
  std::vector<Unsupported> unsupported;
};

// Total: text that is no C++ comes back as it is.  REQUIRES: source.size() <= kSourceBytesMax.
Rewritten rewrite_for_cpu(std::string_view source);

}  // namespace mc::lex

#endif  // MC_LEX_REWRITE_H_
