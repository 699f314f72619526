// SPDX-License-Identifier: Apache-2.0
#include "train/loss.h"

#include <vector>

#include <ATen/ops/zeros_like.h>

#include "core/check.h"
#include "model/ops.h"

namespace mc::train {

at::Tensor add_loss_gradient(const model::ForwardContext& context,
                             std::span<const Sample* const> samples, double weight,
                             model::Parameters& gradients) {
  std::vector<std::vector<int32_t>> inputs;
  std::vector<int64_t> rows;  // The rows of the hidden states that predict a learned token.
  std::vector<int64_t> targets;
  int64_t start = 0;
  for (const Sample* sample : samples) {
    MC_CHECK(sample->answer > 0 && sample->answer < static_cast<int64_t>(sample->tokens.size()));
    // The last token is a target only, never an input.
    inputs.emplace_back(sample->tokens.begin(), sample->tokens.end() - 1);
    for (auto i = static_cast<size_t>(sample->answer); i < sample->tokens.size(); ++i) {
      rows.push_back(start + static_cast<int64_t>(i) - 1);
      targets.push_back(sample->tokens[i]);
    }
    start += static_cast<int64_t>(inputs.back().size());
  }
  const at::Device device = context.weights.flat.device();
  const model::Batch batch = model::make_batch(inputs, device);
  const at::Tensor rows_N = model::ops::on_device(rows, device);
  const at::Tensor targets_N = model::ops::on_device(targets, device);
  model::Tape tape;
  const at::Tensor hidden = model::forward(context, batch, &tape);
  const model::ops::TokenLoss loss = model::ops::token_loss(
      hidden.index_select(0, rows_N), context.weights.head, targets_N, weight, gradients.head);
  at::Tensor d_hidden = at::zeros_like(hidden);
  d_hidden.index_copy_(0, rows_N, loss.dh_Nh);
  model::backward(context, batch, tape, d_hidden, gradients);
  return loss.sum;
}

}  // namespace mc::train
