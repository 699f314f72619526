// SPDX-License-Identifier: Apache-2.0
#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

namespace mc::train {

double learning_rate(const OptimizerOptions& options, double progress) {
  progress = std::clamp(progress, 0.0, 1.0);
  if (progress < options.warmup) return options.lr * progress / options.warmup;
  const double rest = options.warmup < 1 ? (progress - options.warmup) / (1 - options.warmup) : 1;
  const double cosine = (1 + std::cos(std::numbers::pi * rest)) / 2;
  return options.lr * (options.lr_end + (1 - options.lr_end) * cosine);
}

Optimizer::Optimizer(at::Tensor master, int64_t matrices, const OptimizerOptions& options)
    : options_(options),
      matrices_(matrices),
      master_(std::move(master)),
      first_(at::zeros_like(master_)),
      second_(at::zeros_like(master_)) {}

double Optimizer::step(at::Tensor& gradients, double lr) {
  const double norm = gradients.norm().item<double>();
  if (!std::isfinite(norm)) return norm;
  if (norm > options_.norm_max) gradients.mul_(options_.norm_max / norm);
  ++steps_;
  update(0, matrices_, gradients, lr, options_.weight_decay);
  update(matrices_, master_.numel() - matrices_, gradients, lr, 0);
  return norm;
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
