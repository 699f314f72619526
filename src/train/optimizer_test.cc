// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <cmath>
#include <limits>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

namespace mc::train {
namespace {

TEST(LearningRate, RisesThenFallsAlongACosine) {
  const OptimizerOptions options{.lr = 2, .lr_end = 0.1, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0.05), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0.1), 2);
  EXPECT_NEAR(learning_rate(options, 0.55), 1.1, 1e-12);
  EXPECT_NEAR(learning_rate(options, 1), 0.2, 1e-12);
  EXPECT_NEAR(learning_rate(options, 2), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate({.lr = 2, .warmup = 0}, 0), 2);
}

// The expected values follow the paper (algorithm 2), for one parameter with weight decay and one
// without.
TEST(Optimizer, StepsFollowThePaper) {
  const OptimizerOptions options{
      .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.5, .norm_max = 100};
  const at::Tensor master = at::tensor({1.5, -2.0}, at::kDouble);
  Optimizer optimizer(master, 1, options);
  double x[2] = {1.5, -2}, m[2] = {}, v[2] = {};
  for (int t = 1; t <= 5; ++t) {
    const double g[2] = {0.3 * t, -1.0 / t};
    at::Tensor gradients = at::tensor({g[0], g[1]}, at::kDouble);
    const double norm = optimizer.step(gradients, 0.1);
    EXPECT_NEAR(norm, std::hypot(g[0], g[1]), 1e-12);
    for (int i = 0; i < 2; ++i) {
      m[i] = 0.8 * m[i] + 0.2 * g[i];
      v[i] = 0.9 * v[i] + 0.1 * g[i] * g[i];
      const double m_hat = m[i] / (1 - std::pow(0.8, t)), v_hat = v[i] / (1 - std::pow(0.9, t));
      x[i] -= 0.1 * ((i == 0 ? 0.5 * x[i] : 0) + m_hat / (std::sqrt(v_hat) + 1e-3));
      EXPECT_NEAR(master[i].item<double>(), x[i], 1e-9) << "step " << t;
    }
  }
}

TEST(Optimizer, LongGradientsAreClipped) {
  Optimizer optimizer(at::full({4}, 1.0, at::kDouble), 4, {.norm_max = 1});
  at::Tensor gradients = at::full({4}, 3.0, at::kDouble);
  EXPECT_NEAR(optimizer.step(gradients, 0.1), 6, 1e-12);
  EXPECT_NEAR(gradients.norm().item<double>(), 1, 1e-12);
}

TEST(Optimizer, ANonFiniteGradientChangesNothing) {
  const at::Tensor master = at::full({4}, 1.0, at::kDouble);
  Optimizer optimizer(master, 4, {});
  at::Tensor gradients = at::full({4}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  EXPECT_FALSE(std::isfinite(optimizer.step(gradients, 0.1)));
  EXPECT_TRUE(master.equal(at::full({4}, 1.0, at::kDouble)));
  EXPECT_EQ(optimizer.steps(), 0);
}

}  // namespace
}  // namespace mc::train
