// SPDX-License-Identifier: Apache-2.0
#include "model/testing/reference.h"

#include <cmath>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

namespace mc::model::reference {
namespace {

at::Tensor ids(const std::vector<int32_t>& tokens, size_t begin, size_t end) {
  const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
  const std::vector<int64_t> wide(first, first + static_cast<std::ptrdiff_t>(end - begin));
  return at::tensor(wide, at::kLong);
}

}  // namespace

at::Tensor random(std::vector<int64_t> shape, uint64_t seed, at::ScalarType type) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::empty(shape, at::kDouble).normal_(0, 1, generator).to(type);
}

at::Tensor leaf(const at::Tensor& x) { return x.detach().clone().set_requires_grad(true); }

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, double epsilon) {
  return x * at::rsqrt(at::pow(x, 2).mean(-1, true) + epsilon) * w;
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const auto parts = gate_up.chunk(2, -1);
  return at::silu(parts[0]) * parts[1];
}

at::Tensor rope(const at::Tensor& x, double theta) {
  const int64_t width = x.size(2);
  // The angles are computed in float32, as for trained models.
  const at::Tensor exponent = at::arange(0, width, 2, at::kFloat) / static_cast<double>(width);
  const at::Tensor frequency = at::pow(at::full({}, theta, at::kFloat), exponent).reciprocal();
  const at::Tensor angle = at::outer(at::arange(x.size(0), at::kFloat), frequency);
  const at::Tensor cos = at::cat({angle.cos(), angle.cos()}, -1).unsqueeze(1).to(x.dtype());
  const at::Tensor sin = at::cat({angle.sin(), angle.sin()}, -1).unsqueeze(1).to(x.dtype());
  const auto parts = x.chunk(2, -1);
  return x * cos + at::cat({-parts[1], parts[0]}, -1) * sin;
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t group = q.size(1) / k.size(1);
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(0, 1); };
  const at::Tensor keys = heads_first(k).repeat_interleave(group, 0);
  const at::Tensor values = heads_first(v).repeat_interleave(group, 0);
  const at::Tensor hidden =
      at::full({q.size(0), q.size(0)}, -std::numeric_limits<double>::infinity(), q.options())
          .triu(1);
  const at::Tensor scores =
      at::matmul(heads_first(q), keys.transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2))) +
      hidden;
  return at::matmul(at::softmax(scores, -1), values).transpose(0, 1);
}

at::Tensor decoder(const Parameters& weights, const std::vector<int32_t>& tokens) {
  const Config& c = weights.config;
  const auto count = static_cast<int64_t>(tokens.size());
  at::Tensor x = weights.embedding.index_select(0, ids(tokens, 0, tokens.size()));
  for (const Block& block : weights.blocks) {
    const at::Tensor normal = rms_norm(x, block.attention_norm, c.norm_epsilon);
    at::Tensor all = at::matmul(normal, block.qkv.t());
    if (block.qkv_bias.defined()) all = all + block.qkv_bias;
    const auto qkv = all.split_with_sizes(
        {c.heads * c.head_dim, c.kv_heads * c.head_dim, c.kv_heads * c.head_dim}, -1);
    at::Tensor q = qkv[0].reshape({count, c.heads, c.head_dim});
    at::Tensor k = qkv[1].reshape({count, c.kv_heads, c.head_dim});
    const at::Tensor v = qkv[2].reshape({count, c.kv_heads, c.head_dim});
    if (block.q_norm.defined()) {
      q = rms_norm(q, block.q_norm, c.norm_epsilon);
      k = rms_norm(k, block.k_norm, c.norm_epsilon);
    }
    const at::Tensor out = attention(rope(q, c.rope_theta), rope(k, c.rope_theta), v);
    x = x + at::matmul(out.reshape({count, -1}), block.o.t());
    const at::Tensor inner =
        swiglu(at::matmul(rms_norm(x, block.ffn_norm, c.norm_epsilon), block.gate_up.t()));
    x = x + at::matmul(inner, block.down.t());
  }
  return rms_norm(x, weights.last_norm, c.norm_epsilon);
}

at::Tensor loss(const Parameters& weights, const std::vector<int32_t>& tokens, int64_t answer) {
  const at::Tensor hidden = decoder(weights, {tokens.begin(), tokens.end() - 1});
  const at::Tensor log_p = at::log_softmax(at::matmul(hidden, weights.head.t()), -1);
  const at::Tensor targets = ids(tokens, static_cast<size_t>(answer), tokens.size()).unsqueeze(1);
  return -log_p.narrow(0, answer - 1, targets.size(0)).gather(1, targets).sum();
}

double distance(const at::Tensor& got, const at::Tensor& expected) {
  const at::Tensor wide = expected.detach().to(at::kDouble);
  const double largest = wide.abs().max().item<double>();
  return (got.detach().to(at::kDouble) - wide).abs().max().item<double>() /
         std::max(largest, 1e-300);
}

}  // namespace mc::model::reference
