// SPDX-License-Identifier: Apache-2.0
// The headers before every candidate source: PyTorch's tensor headers without pybind11, then the
// CUDA language.  They become a precompiled header once for each PyTorch and set of flags.
//
// The order matters: PyTorch and the standard library change shape when __CUDACC__ is defined, so
// they come first.
#ifndef MC_EMU_PRELUDE_H_
#define MC_EMU_PRELUDE_H_

#include "mc_emu/half_c10.h"  // Before PyTorch: gives at::Half its conversions to and from __half.

#include <ATen/Dispatch.h>
#if __has_include(<ATen/Dispatch_v2.h>)  // The facade has none.
#include <ATen/Dispatch_v2.h>
#endif
#include <torch/types.h>

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

#include "mc_emu/bind.h"
#include "mc_emu/cuda.h"
#include "mc_emu/torch_cuda.h"

#include <cuda_bf16.h>  // Atomics of half and bfloat16, for those that do not include it.
#include <cuda_fp16.h>

// A kernel's argument keeps its type on the way: GCC's own NULL would arrive as an integer.
#undef NULL
#define NULL nullptr

#endif  // MC_EMU_PRELUDE_H_
