// SPDX-License-Identifier: Apache-2.0
// All that torch/extension.h declares under PyTorch's names, without the binding.
#ifndef MC_AT_TORCH_H_
#define MC_AT_TORCH_H_

#include "mc_at/dispatch.h"
#include "mc_at/macros.h"
#include "mc_at/tensor.h"

namespace at {
constexpr ScalarType kUInt8 = kByte;
constexpr ScalarType kInt8 = kChar;
constexpr ScalarType kInt16 = kShort;
constexpr ScalarType kInt32 = kInt;
constexpr ScalarType kInt64 = kLong;
constexpr ScalarType kFloat16 = kHalf;
constexpr ScalarType kFloat32 = kFloat;
constexpr ScalarType kFloat64 = kDouble;
}  // namespace at

namespace torch {
using namespace at;  // PyTorch's own headers do so.
using c10::Error;
using c10::nullopt;
using std::optional;
using Dtype = at::ScalarType;
}  // namespace torch

#endif  // MC_AT_TORCH_H_
