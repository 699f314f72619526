// SPDX-License-Identifier: Apache-2.0
//
// The kernels' source runs on the host (testing/host_gpu.h) and is compared with the generic form
// of the operators.
#include <algorithm>
#include <random>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include "model/ops.h"
#include "model/sampling.h"
#include "model/testing/host_gpu.h"
#include "model/testing/reference.h"

#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage"
namespace {
#define WIDTH 328
#define HEAD_DIM 32
#define HEADS 6
#define KV_HEADS 2
#define PLAIN
#include "model/gpu_kernels.cu"
}  // namespace

namespace mc::model {
namespace {

using host_gpu::launch;
using reference::distance;

constexpr double kRounding = 1.0 / 128;  // Two roundings to bfloat16, with some margin.

at::Tensor noise(std::vector<int64_t> shape, uint64_t seed) {
  return reference::random(std::move(shape), seed, at::kFloat).to(at::kBFloat16);
}

bf16* bits(const at::Tensor& x) {
  return x.defined() ? static_cast<bf16*>(const_cast<void*>(x.const_data_ptr())) : nullptr;
}
template <typename T>
T* numbers(const at::Tensor& x) {
  return const_cast<T*>(x.const_data_ptr<T>());
}
i64* longs(const at::Tensor& x) { return reinterpret_cast<i64*>(numbers<int64_t>(x)); }

at::Tensor floats(std::vector<int64_t> shape) { return at::zeros(shape, at::kFloat); }

TEST(GpuKernels, AddedNormAndItsBackwardFollowTheFormula) {
  const at::Tensor x = noise({11, WIDTH}, 1), branch = noise({11, WIDTH}, 2), w = noise({WIDTH}, 3);
  const at::Tensor sum = at::empty_like(x), y = at::empty_like(x), scale = floats({11});
  launch({2, 1, 1}, 256, [&] {
    add_rms_norm(bits(x), bits(branch), bits(w), 1e-5F, 11, bits(sum), bits(y),
                 numbers<float>(scale));
  });
  EXPECT_EQ(distance(sum, x + branch), 0);
  const ops::Norm norm = ops::rms_norm(sum, w, 1e-5, ops::Form::kGeneric);
  EXPECT_LT(distance(y, norm.y_Nh), kRounding);
  EXPECT_LT(distance(scale, norm.scale_N), 1e-5);

  const at::Tensor dy = noise({11, WIDTH}, 4), dx = noise({11, WIDTH}, 5),
                   parts = floats({2, WIDTH});
  at::Tensor want_dx = dx.clone(), want_dw = floats({WIDTH});
  ops::rms_norm_backward(dy, sum, w, norm.scale_N, want_dx, want_dw, ops::Form::kGeneric);
  launch({2, 1, 1}, 256, [&] {
    rms_norm_backward(bits(dy), bits(sum), bits(w), numbers<float>(scale), 11, bits(dx),
                      numbers<float>(parts));
  });
  EXPECT_LT(distance(dx, want_dx), kRounding);
  const at::Tensor dw = at::full({WIDTH}, 2.0, at::kFloat);
  launch({(WIDTH + 31) / 32, 1, 1}, 256,
         [&] { add_column_sums(numbers<float>(parts), 2, WIDTH, numbers<float>(dw)); });
  EXPECT_LT(distance(dw - 2, want_dw), 1e-5);
}

TEST(GpuKernels, SwigluAndItsBackwardFollowTheFormula) {
  const at::Tensor gate_up = noise({5, 48}, 1), dy = noise({5, 24}, 2);
  const at::Tensor y = at::empty_like(dy), d_gate_up = at::empty_like(gate_up);
  launch({1, 1, 1}, 64, [&] { swiglu(bits(gate_up), 5, 24, bits(y)); });
  launch({1, 1, 1}, 64, [&] { swiglu_backward(bits(dy), bits(gate_up), 5, 24, bits(d_gate_up)); });
  EXPECT_LT(distance(y, ops::swiglu(gate_up, ops::Form::kGeneric)), kRounding);
  const at::Tensor want = ops::swiglu_backward(dy.to(at::kFloat), gate_up.to(at::kFloat));
  EXPECT_LT(distance(d_gate_up, want), kRounding);
}

// Queries, keys and values of some tokens; the parameter says whether heads have norms.
class Heads : public testing::TestWithParam<bool> {
 protected:
  static constexpr int64_t kTokens = 7, kQkv = (HEADS + 2 * KV_HEADS) * HEAD_DIM;
  at::Tensor view(const at::Tensor& qkv, int64_t first, int64_t count) const {
    return qkv.narrow(1, first * HEAD_DIM, count * HEAD_DIM).view({kTokens, count, HEAD_DIM});
  }
  // The expected values are computed in float32 by the generic operators.
  at::Tensor expected(int64_t first, int64_t count, const at::Tensor& w) const {
    at::Tensor x = view(qkv_, first, count).to(at::kFloat).contiguous();
    if (GetParam()) {
      x = ops::rms_norm(x.view({-1, HEAD_DIM}), w.to(at::kFloat), 1e-6).y_Nh.view(x.sizes());
    }
    ops::rope_(x, positions_, rope_, ops::Direction::kForward);
    return x;
  }

  const at::Tensor qkv_ = noise({kTokens, kQkv}, 1);
  const at::Tensor positions_ = at::tensor({0, 1, 2, 9, 0, 4, 3}, at::kLong);
  const ops::RopeTable rope_ = ops::rope_table(12, HEAD_DIM, 1e4);
  const at::Tensor q_norm_ = noise({HEAD_DIM}, 2), k_norm_ = noise({HEAD_DIM}, 3);
  const bf16* q_weight() const { return GetParam() ? bits(q_norm_) : nullptr; }
  const bf16* k_weight() const { return GetParam() ? bits(k_norm_) : nullptr; }
};

TEST_P(Heads, AreNormalizedAndRotatedWithCorrectGradients) {
  const at::Tensor q = at::empty({kTokens, HEADS, HEAD_DIM}, at::kBFloat16);
  const at::Tensor k = at::empty({kTokens, KV_HEADS, HEAD_DIM}, at::kBFloat16);
  const at::Tensor q_scale = floats({kTokens * HEADS}), k_scale = floats({kTokens * KV_HEADS});
  const float *cos = numbers<float>(rope_.cos_PD2), *sin = numbers<float>(rope_.sin_PD2);
  launch({1, 1, 1}, 256, [&] {
    make_heads(bits(qkv_), longs(positions_), cos, sin, q_weight(), k_weight(), 1e-6F, kTokens,
               bits(q), HEADS * HEAD_DIM, bits(k), KV_HEADS * HEAD_DIM, numbers<float>(q_scale),
               numbers<float>(k_scale), nullptr, nullptr, 0);
  });
  EXPECT_LT(distance(q, expected(0, HEADS, q_norm_)), kRounding);
  EXPECT_LT(distance(k, expected(HEADS, KV_HEADS, k_norm_)), kRounding);

  const at::Tensor dq = noise({kTokens, HEADS, HEAD_DIM}, 5);
  const at::Tensor dk = noise({kTokens, KV_HEADS, HEAD_DIM}, 6), dv = noise(dk.sizes().vec(), 7);
  const at::Tensor d_qkv = at::empty_like(qkv_);
  const at::Tensor q_parts = floats({1, HEAD_DIM}), k_parts = floats({1, HEAD_DIM});
  launch({1, 1, 1}, 256, [&] {
    make_heads_backward(bits(dq), bits(dk), bits(dv), bits(qkv_), longs(positions_), cos, sin,
                        q_weight(), k_weight(), numbers<float>(q_scale), numbers<float>(k_scale),
                        kTokens, bits(d_qkv), numbers<float>(q_parts), numbers<float>(k_parts));
  });
  const auto check = [&](const at::Tensor& d, int64_t first, const at::Tensor& w,
                         const at::Tensor& scale, const at::Tensor& parts) {
    at::Tensor want = d.to(at::kFloat).contiguous();
    ops::rope_(want, positions_, rope_, ops::Direction::kInverse);
    at::Tensor dw = floats({HEAD_DIM});
    if (GetParam()) {
      const at::Tensor x = view(qkv_, first, d.size(1)).to(at::kFloat).reshape({-1, HEAD_DIM});
      at::Tensor dx = at::zeros_like(x);
      ops::rms_norm_backward(want.view({-1, HEAD_DIM}), x, w.to(at::kFloat), scale, dx, dw);
      want = dx.view(d.sizes());
      EXPECT_LT(distance(parts[0], dw), 1e-5);
    }
    EXPECT_LT(distance(view(d_qkv, first, d.size(1)), want), kRounding);
  };
  check(dq, 0, q_norm_, q_scale, q_parts);
  check(dk, HEADS, k_norm_, k_scale, k_parts);
  EXPECT_EQ(distance(view(d_qkv, HEADS + KV_HEADS, KV_HEADS), dv), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, Heads, testing::Bool());

TEST(GpuKernels, DecodingAttendsToTheCacheWithAndWithoutSplits) {
  constexpr int64_t kSlots = 3, kLength = 90, kQkv = (HEADS + 2 * KV_HEADS) * HEAD_DIM;
  const at::Tensor qkv = noise({kSlots, kQkv}, 1);
  const at::Tensor k_cache = noise({kSlots, KV_HEADS, kLength, HEAD_DIM}, 2);
  const at::Tensor v_cache = noise({kSlots, KV_HEADS, kLength, HEAD_DIM}, 3);
  const std::vector<int64_t> lengths = {1, 90, 37};
  const at::Tensor positions = at::tensor({0, 89, 36}, at::kLong);
  const at::Tensor q = qkv.narrow(1, 0, HEADS * HEAD_DIM).view({kSlots, HEADS, HEAD_DIM});
  const at::Tensor want =
      ops::attention_decode(q.to(at::kFloat).contiguous(), k_cache.to(at::kFloat),
                            v_cache.to(at::kFloat), ops::CacheRows(lengths, floats({1})));
  for (const unsigned splits : {1U, 3U}) {
    const at::Tensor out = at::empty({kSlots, HEADS, HEAD_DIM}, at::kBFloat16);
    const at::Tensor parts = floats({kSlots * HEADS * splits * (HEAD_DIM / 8) * 10});
    launch({kSlots, KV_HEADS, splits}, 256, [&] {
      attend_cache(bits(qkv), bits(k_cache), bits(v_cache), longs(positions), kLength, kQkv,
                   bits(out), splits > 1 ? numbers<float>(parts) : nullptr);
    });
    if (splits > 1) {
      launch({1, 1, 1}, 128,
             [&] { join_parts(numbers<float>(parts), 3, kSlots * HEADS, bits(out)); });
    }
    EXPECT_LT(distance(out, want), kRounding) << splits;
  }
}

TEST(GpuKernels, LogSoftmaxGivesLogProbabilityEntropyAndGradient) {
  const at::Tensor logits = noise({3, 1000}, 1) * 4, targets = at::tensor({5, 999, 0}, at::kLong);
  const at::Tensor log_p = at::log_softmax(logits.to(at::kDouble) / 0.7, 1);
  const at::Tensor log_probs = at::zeros({3}, at::kDouble), entropy = at::zeros({3}, at::kDouble);
  launch({3, 1, 1}, 512, [&] {
    log_softmax_row(bits(logits), longs(targets), 1000, 1 / 0.7F, nullptr, 2.5F, 1,
                    numbers<double>(log_probs), numbers<double>(entropy));
  });
  const at::Tensor index = targets.unsqueeze(1);
  EXPECT_LT(distance(log_probs, log_p.gather(1, index).squeeze(1)), 1e-5);
  EXPECT_LT(distance(entropy, -(log_p.exp() * log_p).sum(1)), 1e-5);
  at::Tensor want = -log_p.exp();
  want.scatter_add_(1, index, at::full({3, 1}, 1.0, at::kDouble));
  EXPECT_LT(distance(logits, want * (2.5 / 0.7)), kRounding);
}

TEST(GpuKernels, TokensEqualThoseThatTheHostDraws) {
  constexpr int64_t kRows = 4, kWidth = 1200;
  const at::Tensor logits = noise({kRows, kWidth}, 1) * 2;
  const at::Tensor wide = logits.to(at::kFloat);
  const at::Tensor step = at::zeros({}, at::kInt);
  for (const Sampling& sampling : {Sampling{0, 1}, Sampling{1, 1}, Sampling{0.8, 0.7}}) {
    std::vector<double> uniforms = {0.01, 0.4, 0.77, 0.999};
    const at::Tensor uniform = at::tensor(uniforms, at::kDouble);
    const at::Tensor tokens = at::zeros({kRows}, at::kLong);
    const at::Tensor results = at::zeros({kRows, 2}, at::kDouble);
    launch({kRows, 1, 1}, 1024, [&] {
      choose(bits(logits), kWidth, sampling.temperature, sampling.top_p, numbers<double>(uniform),
             numbers<int>(step), kRows, longs(tokens), numbers<double>(results));
    });
    for (int64_t i = 0; i < kRows; ++i) {
      const Choice want = choose_token({wide.const_data_ptr<float>() + i * kWidth, kWidth},
                                       sampling, uniforms[static_cast<size_t>(i)]);
      EXPECT_EQ(tokens[i].item<int64_t>(), want.token) << sampling.top_p;
      EXPECT_NEAR(results[i][1].item<double>(), want.log_prob, 1e-5);
    }
  }
}

TEST(GpuKernels, AdamWWithClippingFollowsTheFormula) {
  constexpr int64_t kCount = 1500;
  const at::Tensor weights = reference::random({kCount}, 1, at::kFloat);
  const at::Tensor gradients = reference::random({kCount}, 2, at::kFloat);
  const at::Tensor first = reference::random({kCount}, 3, at::kFloat);
  const at::Tensor second = reference::random({kCount}, 4, at::kFloat).abs();
  const at::Tensor copy = at::zeros({kCount}, at::kBFloat16), parts = at::zeros({2}, at::kDouble);
  launch({2, 1, 1}, 256,
         [&] { sum_squares(numbers<float>(gradients), kCount, numbers<double>(parts)); });
  const at::Tensor norm = parts.sum().sqrt();
  EXPECT_LT(distance(norm, gradients.to(at::kDouble).norm()), 1e-6);
  const at::Tensor g = gradients.to(at::kDouble) / norm * 0.5;
  const at::Tensor m = first.to(at::kDouble) * 0.9 + g * 0.1;
  const at::Tensor v = second.to(at::kDouble) * 0.95 + g.square() * 0.05;
  const at::Tensor want = weights.to(at::kDouble) * (1 - 0.01 * 0.1) -
                          m * (0.01 / 0.271) / ((v / 0.142625).sqrt() + 1e-8);
  launch({2, 1, 1}, 256, [&] {
    adamw(numbers<float>(weights), numbers<float>(gradients), numbers<float>(first),
          numbers<float>(second), bits(copy), kCount, numbers<double>(norm),
          {0.01F, 0.9F, 0.95F, 1e-8F, 0.1F, 0.5F, 0.271F, 0.142625F});
  });
  EXPECT_LT(distance(weights, want), 1e-6);
  EXPECT_LT(distance(first, m), 1e-6);
  EXPECT_LT(distance(second, v), 1e-6);
  EXPECT_EQ(distance(copy, weights.to(at::kBFloat16)), 0);
}

TEST(GpuKernels, RowsAreGatheredAddedAndWrittenToSlots) {
  const at::Tensor table = noise({6, 16}, 1), rows = at::tensor({4, 0, 4}, at::kLong);
  const at::Tensor got = at::zeros({3, 16}, at::kBFloat16), sums = floats({6, 16});
  launch({1, 1, 1}, 32, [&] { gather_rows(bits(table), longs(rows), 3, 16, bits(got)); });
  EXPECT_EQ(distance(got, table.index_select(0, rows)), 0);
  launch({1, 1, 1}, 32, [&] { add_rows(bits(got), longs(rows), 3, 16, numbers<float>(sums)); });
  EXPECT_EQ(distance(sums, floats({6, 16}).index_add_(0, rows, got.to(at::kFloat))), 0);

  const at::Tensor k = noise({5, KV_HEADS, HEAD_DIM}, 2), v = noise({5, KV_HEADS, HEAD_DIM}, 3);
  const at::Tensor k_cache = at::zeros({3, KV_HEADS, 4, HEAD_DIM}, at::kBFloat16);
  const at::Tensor v_cache = at::zeros_like(k_cache);
  const at::Tensor starts = at::tensor({0, 2, 5}, at::kLong);
  const at::Tensor prompt_of = at::tensor({1, 0, 1}, at::kLong);
  const at::Tensor slot_of = at::tensor({2, 0, 1}, at::kLong);
  launch({1, 3, 1}, 32, [&] {
    fill_cache(bits(k), bits(v), KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, longs(starts),
               longs(prompt_of), longs(slot_of), 4, bits(k_cache), bits(v_cache));
  });
  for (const int64_t slot : {1, 2}) {
    EXPECT_EQ(distance(k_cache[slot].narrow(1, 0, 3), k.narrow(0, 2, 3).transpose(0, 1)), 0);
    EXPECT_EQ(distance(v_cache[slot].narrow(1, 0, 3), v.narrow(0, 2, 3).transpose(0, 1)), 0);
  }
  EXPECT_EQ(distance(k_cache[0].narrow(1, 0, 2), k.narrow(0, 0, 2).transpose(0, 1)), 0);
}

}  // namespace
}  // namespace mc::model
