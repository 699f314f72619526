// SPDX-License-Identifier: Apache-2.0
//
// The functions that device code may call.  g++ takes a kernel for an ordinary function, so
// std::sort, a host function, a file or an exception in it compiles; a CUDA compiler refuses them.
//
// The rule is applied to what the compiler made of the source: the functions after the front end
// and before inlining (-fdump-tree-gimple-lineno), where macros, aliases and templates are
// resolved.  __global__ and __device__ leave the attribute `noclone`
// (emu/include/mc_emu/language.h), and __host__ leaves `no_profile_instrument_function`.  From the
// functions that are for the device alone, all calls are followed.  A call in the candidate's own
// text is refused when it is of
// - a function of the candidate's own that is neither for the device nor constexpr,
// - an algorithm, container or stream of the standard library that is not constexpr in C++17,
// - a function of the C library that CUDA lacks,
// or when it throws, catches, or uses a thread_local variable.
//
// The rule errs on the silent side: a name with one overload for the device is for the device;
// constructors, destructors, assignments and lambdas are followed and not refused; calls through
// pointers are not followed.
#ifndef MC_COMPILE_DEVICE_CODE_H_
#define MC_COMPILE_DEVICE_CODE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mc::compile {

// Facts that the dump does not contain.
struct DeviceCodeContext {
  std::vector<std::string> own_folders;      // The candidate's headers are there.
  std::vector<std::string> trusted_folders;  // Headers of the emulator and of PyTorch.
  bool has_constexpr_algorithms = false;     // The candidate asks nvcc for C++20 or later.
};

// The errors in the form that g++ gives them, a line each; "" when there are none.
// `sources` are all of the candidate's, as compiled; `dump` is of one unit.
std::string device_code_errors(std::string_view dump, std::span<const std::string_view> sources,
                               const DeviceCodeContext& context);

}  // namespace mc::compile

#endif  // MC_COMPILE_DEVICE_CODE_H_
