// SPDX-License-Identifier: Apache-2.0
#include "train/loss.h"

#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include "model/decoder.h"

namespace mc::train {
namespace {

model::Config small() {
  model::Config config;
  config.family = model::Family::kQwen3;
  config.vocab = 20;
  config.hidden = 12;
  config.ffn = 10;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 6;
  config.tied = true;
  return config;
}

class Loss : public testing::Test {
 protected:
  Loss() {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
    flat_.normal_(0, 0.3, generator);
    const auto table = model::ops::rope_table(32, 6, 1e4);
    rope_ = {table.cos_PD2.to(at::kDouble), table.sin_PD2.to(at::kDouble)};
  }
  // The loss at the parameters `flat`; writes its gradient to `gradients` if that is not null.
  double loss(const at::Tensor& flat, const std::vector<const Sample*>& samples,
              at::Tensor* gradients = nullptr) const {
    const model::Parameters weights(config_, flat);
    model::Parameters sums(config_, at::zeros_like(flat));
    const double sum = add_loss_gradient({weights, rope_}, samples, 0.25, sums).item<double>();
    if (gradients != nullptr) *gradients = sums.flat;
    return 0.25 * sum;
  }

  const model::Config config_ = small();
  at::Tensor flat_ = at::empty({model::layout_of(config_).total}, at::kDouble);
  model::ops::RopeTable rope_;
  const Sample first_{{1, 2, 3, 4, 5, 6, 7}, 3};
  const Sample second_{{9, 8, 7, 19}, 1};
};

// The test samples parameters of every matrix and norm, including the tied embedding.
TEST_F(Loss, GradientsEqualFiniteDifferences) {
  at::Tensor gradients;
  loss(flat_, {&first_, &second_}, &gradients);
  const double scale = gradients.abs().max().item<double>();
  constexpr double kStep = 1e-5;
  for (const model::Slice& slice : model::layout_of(config_).slices) {
    for (const int64_t i : {slice.offset, slice.offset + slice.count / 2}) {
      at::Tensor up = flat_.clone(), down = flat_.clone();
      up[i].add_(kStep);
      down[i].sub_(kStep);
      const double difference =
          (loss(up, {&first_, &second_}) - loss(down, {&first_, &second_})) / (2 * kStep);
      EXPECT_NEAR(gradients[i].item<double>(), difference, 1e-8 * scale) << slice.name;
    }
  }
}

TEST_F(Loss, TheLossOfAPackIsTheSumOverItsConversations) {
  at::Tensor both, one, other;
  const double together = loss(flat_, {&first_, &second_}, &both);
  EXPECT_NEAR(together, loss(flat_, {&first_}, &one) + loss(flat_, {&second_}, &other), 1e-12);
  EXPECT_LE((both - one - other).abs().max().item<double>(), 1e-12);
}

// Tokens before the answer add nothing to the loss: the sum grows with the number of learned ones.
TEST_F(Loss, OnlyTheLastTurnIsLearned) {
  const Sample shorter{{1, 2, 3, 4}, 3}, longer{{1, 2, 3, 4}, 2};
  EXPECT_EQ(num_learned(shorter), 1);
  EXPECT_LT(loss(flat_, {&shorter}), loss(flat_, {&longer}));
}

}  // namespace
}  // namespace mc::train
