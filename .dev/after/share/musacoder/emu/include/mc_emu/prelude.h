// SPDX-License-Identifier: Apache-2.0
// The headers before every candidate source: PyTorch's tensor headers, then the CUDA language.
// They become a precompiled header once for each PyTorch and set of flags.  PyTorch's headers for
// CUDA are not among them: a source has their names by its own includes alone.
//
// The order matters: PyTorch and the standard library change shape when __CUDACC__ is defined, so
// they come first.
#ifndef MC_EMU_PRELUDE_H_
#define MC_EMU_PRELUDE_H_

#include "mc_emu/half_c10.h"  // Before PyTorch: gives at::Half its conversions to and from __half.

#include <ATen/Dispatch.h>
#include <ATen/core/DeprecatedTypeProperties.h>
#include <torch/types.h>
#ifndef MC_AT_TORCH_H_  // The facade's binding is short.
#include <torch/csrc/utils/pybind.h>
#endif

#include <algorithm>
#include <array>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mc_emu/cuda.h"

#include <cuda_bf16.h>  // Atomics of half and bfloat16, for those that do not include it.
#include <cuda_fp16.h>

// PyTorch's headers define these for CUDA's compiler alone.
#ifndef C10_LAUNCH_BOUNDS_1
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#endif
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_ASSERT2(condition) assert(condition)

namespace at {
// PyTorch has it for CUDA compilers only.
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
}  // namespace at

// PyTorch 2.11 no longer has it: AT_DISPATCH macros took x.type() once; much code still says so.
namespace detail {
template <class T, std::enable_if_t<std::is_same_v<T, at::DeprecatedTypeProperties>, int> = 0>
inline at::ScalarType scalar_type(const T& type) {
  return type.scalarType();
}
}  // namespace detail

// A kernel's argument keeps its type on the way: GCC's own NULL would arrive as an integer.
#undef NULL
#define NULL nullptr

#endif  // MC_EMU_PRELUDE_H_
