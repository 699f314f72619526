// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include "core/check.h"
#include "model/gpu_ops.h"

namespace mc::train {

double learning_rate(const OptimizerOptions& options, double progress) {
  progress = std::clamp(progress, 0.0, 1.0);
  if (progress < options.warmup) return options.lr * progress / options.warmup;
  const double rest = options.warmup < 1 ? (progress - options.warmup) / (1 - options.warmup) : 1;
  const double cosine = (1 + std::cos(std::numbers::pi * rest)) / 2;
  return options.lr * (options.lr_end + (1 - options.lr_end) * cosine);
}

Optimizer::Optimizer(at::Tensor master, int64_t matrices, const OptimizerOptions& options,
                     at::Tensor weights)
    : options_(options),
      matrices_(matrices),
      master_(std::move(master)),
      first_(at::zeros_like(master_)),
      second_(at::zeros_like(master_)) {
  MC_CHECK(0 <= matrices && matrices <= master_.numel());
  MC_CHECK(!weights.defined() || weights.numel() == master_.numel());
  if (weights.defined() && !weights.is_same(master_)) weights_ = std::move(weights);
}

double Optimizer::step(at::Tensor& gradients, double lr) {
  MC_CHECK(gradients.numel() == master_.numel() && gradients.device() == master_.device());
  if (master_.is_cuda() && master_.scalar_type() == at::kFloat) {
    return step_by_kernels(gradients, lr);
  }
  const double norm = gradients.norm().item<double>();
  if (!std::isfinite(norm)) return norm;
  if (norm > options_.norm_max) gradients.mul_(options_.norm_max / norm);
  ++steps_;
  update(0, matrices_, gradients, lr, options_.weight_decay);
  update(matrices_, master_.numel() - matrices_, gradients, lr, 0);
  if (weights_.defined()) weights_.copy_(master_);
  return norm;
}

// The host waits for the device once, after all kernels are launched.
double Optimizer::step_by_kernels(const at::Tensor& gradients, double lr) {
  const at::Tensor norm = model::gpu::norm_of(gradients);
  const auto power = static_cast<double>(steps_ + 1);
  const auto part = [](const at::Tensor& all, int64_t start, int64_t count) {
    return all.defined() ? all.narrow(0, start, count) : all;
  };
  const bool has_copy = weights_.defined() && weights_.scalar_type() == at::kBFloat16;
  const auto update_part = [&](int64_t start, int64_t count, double decay) {
    model::gpu::adamw(part(master_, start, count), part(gradients, start, count),
                      part(first_, start, count), part(second_, start, count),
                      has_copy ? part(weights_, start, count) : at::Tensor(), norm,
                      {static_cast<float>(lr), static_cast<float>(options_.beta1),
                       static_cast<float>(options_.beta2), static_cast<float>(options_.epsilon),
                       static_cast<float>(decay), static_cast<float>(options_.norm_max),
                       static_cast<float>(1 - std::pow(options_.beta1, power)),
                       static_cast<float>(1 - std::pow(options_.beta2, power))});
  };
  update_part(0, matrices_, options_.weight_decay);
  update_part(matrices_, master_.numel() - matrices_, 0);
  if (weights_.defined() && !has_copy) weights_.copy_(master_);
  const double length = norm.item<double>();
  if (std::isfinite(length)) ++steps_;
  return length;
}

void Optimizer::update(int64_t start, int64_t count, const at::Tensor& gradients, double lr,
                       double decay) {
  const auto part = [&](const at::Tensor& all) { return all.narrow(0, start, count); };
  const at::Tensor step =
      at::full({}, static_cast<double>(steps_), master_.options().dtype(at::kFloat));
  at::_fused_adamw_({part(master_)}, {part(gradients)}, {part(first_)}, {part(second_)}, {}, {step},
                    lr, options_.beta1, options_.beta2, decay, options_.epsilon,
                    /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace mc::train
