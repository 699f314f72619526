// SPDX-License-Identifier: Apache-2.0
//
// The loss of supervised training over some conversations, and its gradient:
//
//   L = 1/n sum over learned tokens of -log p(token | what comes before it)
//
// The number n counts the learned tokens of the whole step, over all forward passes.
#ifndef MC_TRAIN_LOSS_H_
#define MC_TRAIN_LOSS_H_

#include <cstdint>
#include <span>

#include "model/decoder.h"
#include "train/samples.h"

namespace mc::train {

// The number of learned tokens of a sample.
inline int64_t num_learned(const Sample& sample) {
  return static_cast<int64_t>(sample.tokens.size()) - sample.answer;
}

// Adds the gradient of weight * sum to `gradients` and returns the sum of -log p, a float64 tensor
// on the device.  The host does not wait for it.
at::Tensor add_loss_gradient(const model::ForwardContext& context,
                             std::span<const Sample* const> samples, double weight,
                             model::Parameters& gradients);

}  // namespace mc::train

#endif  // MC_TRAIN_LOSS_H_
