// SPDX-License-Identifier: Apache-2.0
#include "model/ops.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gmock/gmock.h>

#include "model/testing/reference.h"

namespace mc::model::ops {
namespace {

using reference::distance;
using reference::leaf;
using reference::random;

// A form and a dtype: float64 is compared with autograd, float32 within its rounding.
struct Case {
  Form form;
  at::ScalarType type;
  double tolerance;
};

class Ops : public testing::TestWithParam<Case> {
 protected:
  at::Tensor cast(const at::Tensor& x) const { return x.detach().to(GetParam().type); }
  Form form() const { return GetParam().form; }
  void expect_near(const at::Tensor& got, const at::Tensor& expected) const {
    EXPECT_LE(distance(got, expected), GetParam().tolerance);
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, Ops,
                         testing::Values(Case{Form::kNative, at::kDouble, 1e-12},
                                         Case{Form::kGeneric, at::kDouble, 1e-12},
                                         Case{Form::kNative, at::kFloat, 2e-6},
                                         Case{Form::kGeneric, at::kFloat, 2e-6}));

TEST_P(Ops, RmsNormAndItsGradientFollowTheFormula) {
  const at::Tensor x = leaf(random({300, 40}, 1)), w = leaf(random({40}, 2));
  const at::Tensor dy = random({300, 40}, 3), before = random({300, 40}, 4);
  const at::Tensor expected = reference::rms_norm(x, w, 1e-5);
  expected.backward(dy);
  const Norm norm = rms_norm(cast(x), cast(w), 1e-5, form());
  expect_near(norm.y_Nh, expected);
  at::Tensor dx = cast(before).clone(), dw = at::zeros_like(cast(w));
  rms_norm_backward(cast(dy), cast(x), cast(w), norm.scale_N, dx, dw, form());
  expect_near(dx, x.grad() + before);
  expect_near(dw, w.grad());
}

TEST_P(Ops, SwigluAndItsGradientFollowTheFormula) {
  const at::Tensor gate_up = leaf(random({200, 66}, 1) * 6), dy = random({200, 33}, 2);
  const at::Tensor expected = reference::swiglu(gate_up);
  expected.backward(dy);
  expect_near(swiglu(cast(gate_up), form()), expected);
  expect_near(swiglu_backward(cast(dy), cast(gate_up), form()), gate_up.grad());
}

TEST_P(Ops, SwigluOfExtremeValuesIsItsLimit) {
  const at::Tensor gate_up = at::tensor({-200.0, 200.0, 3.0, 3.0}, at::kDouble).view({1, 4});
  expect_near(swiglu(cast(gate_up), form()), at::tensor({0.0, 600.0}, at::kDouble).view({1, 2}));
}

TEST_P(Ops, RopeRotatesByThePositionAndTheInverseIsItsGradient) {
  const at::Tensor x = leaf(random({70, 3, 8}, 1)), dy = random({70, 3, 8}, 2);
  const at::Tensor expected = reference::rope(x, 1e4);
  expected.backward(dy);
  RopeTable table = rope_table(70, 8, 1e4);
  table = {cast(table.cos_PD2), cast(table.sin_PD2)};
  const at::Tensor positions = at::arange(70, at::kLong);
  const at::Tensor y = cast(x).clone(), dx = cast(dy).clone();
  rope_(y, positions, table, Direction::kForward, form());
  rope_(dx, positions, table, Direction::kInverse, form());
  expect_near(y, expected);
  expect_near(dx, x.grad());
}

// Three sequences of different lengths, with two query heads for each key head.
TEST_P(Ops, AttentionAndItsGradientStayWithinEachSequence) {
  const std::vector<int64_t> starts = {0, 5, 6, 90};
  const at::Tensor q = leaf(random({90, 4, 8}, 1)), k = leaf(random({90, 2, 8}, 2)),
                   v = leaf(random({90, 2, 8}, 3)), dout = random({90, 4, 8}, 4);
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto part = [&](const at::Tensor& x) {
      return x.narrow(0, starts[i], starts[i + 1] - starts[i]);
    };
    parts.push_back(reference::attention(part(q), part(k), part(v)));
  }
  const at::Tensor expected = at::cat(parts);
  expected.backward(dout);
  const AttentionInputs in{cast(q), cast(k), cast(v)};
  const Extents extents = make_extents(starts, at::kCPU);
  const Attention got = attention(in.q_THD, in.k_TKD, in.v_TKD, extents, form());
  const AttentionInputs gradients{at::empty_like(in.q_THD), at::empty_like(in.k_TKD),
                                  at::empty_like(in.v_TKD)};
  attention_backward(cast(dout), in, got, extents, gradients, form());
  expect_near(got.out_THD, expected);
  expect_near(gradients.q_THD, q.grad());
  expect_near(gradients.k_TKD, k.grad());
  expect_near(gradients.v_TKD, v.grad());
}

TEST_P(Ops, DecodingAttendsToTheTokensOfTheSlot) {
  const at::Tensor k = random({3, 2, 20, 8}, 1), v = random({3, 2, 20, 8}, 2);
  const at::Tensor q = random({2, 4, 8}, 3);
  const std::vector<int64_t> lengths = {18, 7};
  const at::Tensor got =
      attention_decode(cast(q), cast(k), cast(v), CacheRows(lengths, cast(q), form()), form());
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t length = lengths[static_cast<size_t>(i)];
    const auto cached = [&](const at::Tensor& x) {
      return x.select(0, i).narrow(1, 0, length).transpose(0, 1);
    };
    // The last row of a causal attention sees all tokens.
    const at::Tensor queries = q.select(0, i).unsqueeze(0).expand({length, -1, -1});
    expect_near(got.select(0, i),
                reference::attention(queries, cached(k), cached(v)).select(0, length - 1));
  }
}

TEST_P(Ops, TokenLossIsTheCrossEntropyAndItsGradient) {
  const at::Tensor h = leaf(random({50, 16}, 1)), w = leaf(random({30, 16}, 2));
  const at::Tensor targets = at::arange(50, at::kLong).remainder(30);
  const at::Tensor log_p = at::log_softmax(at::matmul(h, w.t()), -1);
  const at::Tensor expected = -log_p.gather(1, targets.unsqueeze(1)).sum();
  (expected * 0.25).backward();
  at::Tensor dw = at::zeros_like(cast(w));
  const TokenLoss loss = token_loss(cast(h), cast(w), targets, 0.25, dw);
  EXPECT_NEAR(loss.sum.item<double>() / expected.item<double>(), 1, GetParam().tolerance);
  expect_near(loss.dh_Nh, h.grad());
  expect_near(dw, w.grad());
}

// Sums the bytes that PyTorch's CPU allocator allocates in this thread.
class AllocatedBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
    sum += std::max<int64_t>(0, size);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t sum = 0;
};

TEST(OpsInBfloat16, DecodingReadsTheCacheWithoutCopyingIt) {
  const at::Tensor k = random({16, 2, 512, 32}, 1, at::kBFloat16);
  const at::Tensor v = random({16, 2, 512, 32}, 2, at::kBFloat16);
  const at::Tensor q = random({16, 4, 32}, 3, at::kBFloat16);
  const std::vector<int64_t> lengths(16, 500);
  const auto allocated = std::make_shared<AllocatedBytes>();
  at::Tensor got;
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, allocated);
    got = attention_decode(q, k, v, CacheRows(lengths, q));
  }
  EXPECT_GT(allocated->sum, 0);
  EXPECT_LT(allocated->sum, static_cast<int64_t>(k.nbytes()) / 4);
  const at::Tensor exact = attention_decode(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble),
                                            CacheRows(lengths, q.to(at::kDouble)));
  EXPECT_LE(distance(got, exact), 1.0 / 64);
}

TEST(Head, ChunksOfALargeVocabularyHaveManyRowsWithinTheLimit) {
  constexpr int64_t kQwen3 = 151'936;
  for (const bool is_cpu : {true, false}) {
    const int64_t rows = head_chunk_rows(kQwen3, is_cpu);
    EXPECT_GE(rows, 256);
    EXPECT_LE(rows * kQwen3 * 4, int64_t{3} << 29);
  }
  EXPECT_GE(head_chunk_rows(kQwen3, /*is_cpu=*/false), 1700);
}

TEST(OpsInBfloat16, TheGenericFormRoundsOnlyItsResult) {
  const at::Tensor x = random({20, 32}, 1, at::kBFloat16), w = random({32}, 2, at::kBFloat16);
  const at::Tensor exact = reference::rms_norm(x.to(at::kDouble), w.to(at::kDouble), 1e-6);
  EXPECT_LE(distance(rms_norm(x, w, 1e-6).y_Nh, exact), 1.0 / 256);
}

TEST_P(Ops, TokenLogProbsAndTheirGradientsFollowTheFormula) {
  const at::Tensor h = leaf(random({50, 12}, 1)), w = leaf(random({30, 12}, 2));
  const at::Tensor g = random({50}, 3);
  const at::Tensor targets = at::arange(50, at::kLong).remainder(30);
  const at::Tensor log_p = at::log_softmax(at::matmul(h, w.t()) / 0.9, 1);
  const at::Tensor expected = log_p.gather(1, targets.unsqueeze(1)).squeeze(1);
  expected.backward(g);
  const TokenLogProbs got = token_log_probs(cast(h), cast(w), targets, 0.9);
  expect_near(got.log_prob_N, expected);
  expect_near(got.entropy_N, -(log_p.exp() * log_p).sum(1));
  at::Tensor dw = at::zeros_like(cast(w));
  expect_near(token_log_probs_backward(g, cast(h), cast(w), targets, 0.9, dw), h.grad());
  expect_near(dw, w.grad());
}

}  // namespace
}  // namespace mc::model::ops
