// SPDX-License-Identifier: Apache-2.0
//
// Simple reference implementations of the operators and of the decoder, for PyTorch's autograd; the
// tests compare our implementations with them.  Random tensors are determined by a seed.
#ifndef MC_MODEL_TESTING_REFERENCE_H_
#define MC_MODEL_TESTING_REFERENCE_H_

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/decoder.h"

namespace mc::model::reference {

at::Tensor random(std::vector<int64_t> shape, uint64_t seed, at::ScalarType type = at::kDouble);
// A leaf tensor with requires_grad.
at::Tensor leaf(const at::Tensor& x);

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, double epsilon);
at::Tensor swiglu(const at::Tensor& gate_up);
// The input x is [T, H, D] and starts at position 0.
at::Tensor rope(const at::Tensor& x, double theta);
// Attention of one sequence.
at::Tensor attention(const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD);
// Hidden states of one sequence after the last norm, [T, h].
at::Tensor decoder(const Parameters& weights, const std::vector<int32_t>& tokens);
// The sum of -log p(tokens[i] | earlier tokens) for i from `answer` on.
at::Tensor loss(const Parameters& weights, const std::vector<int32_t>& tokens, int64_t answer);

// The largest absolute difference, relative to the largest absolute value in `expected`.
double distance(const at::Tensor& got, const at::Tensor& expected);

}  // namespace mc::model::reference

#endif  // MC_MODEL_TESTING_REFERENCE_H_
