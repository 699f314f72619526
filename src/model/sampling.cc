// SPDX-License-Identifier: Apache-2.0
#include "model/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>

#include "core/check.h"
#include "core/hash.h"

namespace mc::model {
namespace {

// The tokens of the nucleus, the likeliest first; ties by id.
std::vector<int32_t> nucleus(const std::vector<double>& weights, double total, double top_p) {
  std::vector<int32_t> heap(weights.size());
  std::iota(heap.begin(), heap.end(), 0);
  const auto less = [&](int32_t a, int32_t b) {
    const double wa = weights[static_cast<size_t>(a)];
    const double wb = weights[static_cast<size_t>(b)];
    return wa != wb ? wa < wb : a > b;
  };
  std::make_heap(heap.begin(), heap.end(), less);
  std::vector<int32_t> kept;
  double mass = 0;
  while (!heap.empty() && mass < top_p * total) {
    std::pop_heap(heap.begin(), heap.end(), less);
    kept.push_back(heap.back());
    mass += weights[static_cast<size_t>(heap.back())];
    heap.pop_back();
  }
  return kept;
}

// The first token at which the sum of weights exceeds `target`.
template <typename Tokens>
int32_t invert(const Tokens& tokens, const std::vector<double>& weights, double target) {
  double mass = 0;
  int32_t last = 0;
  for (const int32_t token : tokens) {
    const double weight = weights[static_cast<size_t>(token)];
    if (weight > 0) last = token;
    mass += weight;
    if (mass > target) return token;
  }
  return last;
}

// For each row, the first column at which `mass`, a running sum, exceeds uniform times the mass at
// column `last`.
at::Tensor invert_rows(const at::Tensor& mass_BV, const at::Tensor& last_B1,
                       const at::Tensor& uniform_B1) {
  const at::Tensor target = uniform_B1 * mass_BV.gather(1, last_B1);
  return at::minimum(at::searchsorted(mass_BV, target, /*out_int32=*/false, /*right=*/true),
                     last_B1);
}

at::Tensor draw_from_all(const at::Tensor& log_p_BV, const at::Tensor& uniform_B1) {
  const at::Tensor last =
      at::full({log_p_BV.size(0), 1}, log_p_BV.size(1) - 1, log_p_BV.options().dtype(at::kLong));
  return invert_rows(log_p_BV.exp().cumsum(1), last, uniform_B1);
}

// The order is that of nucleus(): the likeliest first, ties by id.
at::Tensor draw_from_nucleus(const at::Tensor& log_p_BV, double top_p,
                             const at::Tensor& uniform_B1) {
  const auto [sorted, tokens] = at::sort(log_p_BV, /*stable=*/true, /*dim=*/1, /*descending=*/true);
  const at::Tensor mass = sorted.exp().cumsum(1);
  const at::Tensor total = mass.narrow(1, mass.size(1) - 1, 1);
  // The last token of the nucleus: the first at which the running sum reaches top_p.
  const at::Tensor last =
      mass.lt(total * top_p).sum(1, /*keepdim=*/true).clamp_max_(mass.size(1) - 1);
  return tokens.gather(1, invert_rows(mass, last, uniform_B1));
}

}  // namespace

Choice choose_token(std::span<const float> logits, const Sampling& sampling, double uniform) {
  MC_CHECK(!logits.empty() && sampling.temperature >= 0);
  MC_CHECK(sampling.top_p > 0 && sampling.top_p <= 1);
  const auto best = std::max_element(logits.begin(), logits.end());
  const double temperature = sampling.temperature > 0 ? sampling.temperature : 1;
  std::vector<double> weights(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    weights[i] = std::exp((logits[i] - double{*best}) / temperature);
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  Choice choice;
  if (sampling.temperature == 0) {
    choice.token = static_cast<int32_t>(best - logits.begin());
  } else {
    std::vector<int32_t> tokens(weights.size());
    std::iota(tokens.begin(), tokens.end(), 0);
    double mass = total;
    if (sampling.top_p < 1) {
      tokens = nucleus(weights, total, sampling.top_p);
      mass = 0;
      for (const int32_t token : tokens) mass += weights[static_cast<size_t>(token)];
    }
    choice.token = invert(tokens, weights, uniform * mass);
  }
  choice.log_prob =
      (logits[static_cast<size_t>(choice.token)] - double{*best}) / temperature - std::log(total);
  return choice;
}

std::vector<Choice> choose_on_device(const at::Tensor& logits_BV, const Sampling& sampling,
                                     std::span<const double> uniforms) {
  MC_CHECK(static_cast<size_t>(logits_BV.size(0)) == uniforms.size());
  const double temperature = sampling.temperature > 0 ? sampling.temperature : 1;
  const at::Tensor log_p = at::log_softmax(logits_BV.to(at::kDouble).div_(temperature), 1);
  const at::Tensor uniform =
      at::tensor(at::ArrayRef<double>(uniforms.data(), uniforms.size()), at::kDouble)
          .to(logits_BV.device())
          .unsqueeze(1);
  const at::Tensor token = sampling.temperature == 0 ? logits_BV.argmax(1, /*keepdim=*/true)
                           : sampling.top_p < 1 ? draw_from_nucleus(log_p, sampling.top_p, uniform)
                                                : draw_from_all(log_p, uniform);
  const at::Tensor both = at::cat({token.to(at::kDouble), log_p.gather(1, token)}, 1).cpu();
  std::vector<Choice> choices(uniforms.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    const double* row = both.const_data_ptr<double>() + 2 * i;
    choices[i] = {static_cast<int32_t>(row[0]), row[1]};
  }
  return choices;
}

double draw(uint64_t seed, std::string_view id, int64_t sample, int64_t position) {
  const std::string label =
      std::string(id) + "/" + std::to_string(sample) + "/" + std::to_string(position);
  constexpr int kSpareBits = 64 - 53;
  return static_cast<double>(derive_seed(seed, label) >> kSpareBits) * 0x1p-53;
}

}  // namespace mc::model
