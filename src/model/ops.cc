// SPDX-License-Identifier: Apache-2.0
#include "model/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/check.h"
#include "model/gpu_ops.h"
#include "model/kernels.h"

namespace mc::model::ops {
namespace {

// The minimum number of rows for one thread.  A weight's gradient is summed separately for each
// such group, so that the result does not depend on the number of threads.
constexpr int64_t kRowsOfTask = 128;
constexpr int64_t kHeadChunkBytesCpu = int64_t{16} << 20;
constexpr int64_t kHeadChunkBytesDevice = int64_t{1} << 30;
constexpr int64_t kHeadChunkRowsMin = 256;
constexpr int64_t kDenseHeadDimMax = 128;
constexpr int64_t kDenseLengthMin = 512;
constexpr int64_t kDenseAloneMin = 4096;

bool has_loops(const at::Tensor& x, Form form) {
  return form == Form::kNative && x.is_cpu() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

// Calls `body` with a zero of the tensor's element type.
template <typename Body>
void with_type(const at::Tensor& x, const Body& body) {
  if (x.scalar_type() == at::kFloat) {
    body(float{});
  } else {
    MC_CHECK(x.scalar_type() == at::kDouble);
    body(double{});
  }
}

at::ScalarType wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

using Linear = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                          c10::string_view, c10::List<std::optional<at::Scalar>>,
                          std::optional<c10::string_view>);

// The operator by which PyTorch calls oneDNN's matrix product; empty in a build without oneDNN.
std::optional<c10::TypedOperatorHandle<Linear>> find_onednn() {
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (!found) return std::nullopt;
  return found->typed<Linear>();
}

// The product a b^T.
at::Tensor multiply(const at::Tensor& a, const at::Tensor& b) {
  static const auto kOneDnn = find_onednn();
  if (kOneDnn && a.is_cpu() && a.scalar_type() == at::kFloat) {
    return kOneDnn->call(a, b, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(), "");
  }
  return at::mm(a, b.t());
}

Norm rms_norm_generic(const at::Tensor& x, const at::Tensor& w, double epsilon) {
  const at::Tensor x_wide = x.to(wide(x));
  const at::Tensor scale = at::rsqrt(x_wide.square().mean(-1, /*keepdim=*/true) + epsilon);
  return {(x_wide * scale * w).to(x.scalar_type()), scale.squeeze(-1)};
}

void rms_norm_backward_generic(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                               const at::Tensor& scale_N, at::Tensor& dx, at::Tensor& dw) {
  const at::Tensor scale = scale_N.unsqueeze(-1);
  const at::Tensor normal = x.to(wide(x)) * scale;
  const at::Tensor dy_wide = dy.to(wide(x));
  const at::Tensor d_normal = dy_wide * w;
  dw.add_((dy_wide * normal).sum(0));
  const at::Tensor mean = (d_normal * normal).mean(-1, /*keepdim=*/true);
  dx.add_((scale * (d_normal - normal * mean)).to(dx.scalar_type()));
}

// Adds to dw in an order that does not depend on the number of threads.
template <typename T>
void rms_norm_backward_loops(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                             const at::Tensor& scale, at::Tensor& dx, at::Tensor& dw) {
  const int64_t count = x.size(0);
  const int64_t width = x.size(1);
  const int64_t tasks = (count + kRowsOfTask - 1) / kRowsOfTask;
  at::Tensor parts = at::zeros({tasks, width}, x.options());
  at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const kernels::Rows rows{task * kRowsOfTask, std::min(count, (task + 1) * kRowsOfTask),
                               width};
      kernels::rms_norm_backward(rows, dy.const_data_ptr<T>(), x.const_data_ptr<T>(),
                                 w.const_data_ptr<T>(), scale.const_data_ptr<T>(),
                                 dx.mutable_data_ptr<T>(),
                                 parts.mutable_data_ptr<T>() + task * width);
    }
  });
  dw.add_(parts.sum(0));
}

at::Tensor half(const at::Tensor& x, int64_t index) {
  const int64_t width = x.size(-1) / 2;
  return x.narrow(-1, index * width, width);
}

// Minus infinity above the diagonal, so that token i sees tokens 0 to i.
at::Tensor causal_mask(int64_t length, const at::Tensor& like) {
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  return at::full({length, length}, minus_infinity, like.options().dtype(wide(like))).triu(1);
}

// Reshapes [L, K * G, D] to [K, G, L, D].
at::Tensor by_kv_head(const at::Tensor& x_LHD, int64_t kv_heads) {
  return x_LHD.view({x_LHD.size(0), kv_heads, x_LHD.size(1) / kv_heads, x_LHD.size(2)})
      .permute({1, 2, 0, 3});
}

// Reshapes [K, G, L, D] to [L, K * G, D].
at::Tensor by_token(const at::Tensor& x_KGLD) {
  return x_KGLD.permute({2, 0, 1, 3}).reshape({x_KGLD.size(2), -1, x_KGLD.size(3)});
}

struct Sequence {
  at::Tensor q;  // [K, G, L, D]
  at::Tensor k;  // [K, G, L, D], the same for every G
  at::Tensor v;
};

Sequence sequence_of(const AttentionInputs& in, int64_t start, int64_t length) {
  const int64_t kv_heads = in.k_TKD.size(1);
  const int64_t group = in.q_THD.size(1) / kv_heads;
  const auto shared = [&](const at::Tensor& x) {
    return by_kv_head(x.narrow(0, start, length), kv_heads).expand({-1, group, -1, -1});
  };
  return {by_kv_head(in.q_THD.narrow(0, start, length), kv_heads), shared(in.k_TKD),
          shared(in.v_TKD)};
}

struct SequenceOut {
  at::Tensor out;  // [K, G, L, D]
  at::Tensor lse;  // [K, G, L]
};

SequenceOut attend_generic(const Sequence& in) {
  const double factor = 1 / std::sqrt(static_cast<double>(in.q.size(-1)));
  const at::ScalarType type = wide(in.q);
  const at::Tensor scores = at::matmul(in.q.to(type), in.k.to(type).transpose(-1, -2))
                                .mul_(factor)
                                .add_(causal_mask(in.q.size(2), in.q));
  const at::Tensor lse = at::logsumexp(scores, -1);
  const at::Tensor weights = (scores - lse.unsqueeze(-1)).exp_();
  return {at::matmul(weights, in.v.to(type)).to(in.q.scalar_type()), lse};
}

SequenceOut attend(const Sequence& in, Form form) {
  if (!has_loops(in.q, form)) return attend_generic(in);
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(in.q, in.k, in.v, 0.0, true);
  return {out, lse};
}

Sequence attend_backward_generic(const at::Tensor& dout, const Sequence& in,
                                 const SequenceOut& saved) {
  const double factor = 1 / std::sqrt(static_cast<double>(in.q.size(-1)));
  const at::ScalarType type = wide(in.q);
  const at::Tensor q = in.q.to(type), k = in.k.to(type), v = in.v.to(type), dy = dout.to(type);
  const at::Tensor weights = (at::matmul(q, k.transpose(-1, -2)).mul_(factor) +
                              causal_mask(q.size(2), q) - saved.lse.unsqueeze(-1))
                                 .exp_();
  const at::Tensor dv = at::matmul(weights.transpose(-1, -2), dy);
  const at::Tensor row_sums = (dy * saved.out).sum(-1, /*keepdim=*/true);
  const at::Tensor dscores = weights * (at::matmul(dy, v.transpose(-1, -2)) - row_sums) * factor;
  return {at::matmul(dscores, k), at::matmul(dscores.transpose(-1, -2), q), dv};
}

Sequence attend_backward(const at::Tensor& dout, const Sequence& in, const SequenceOut& saved,
                         Form form) {
  if (!has_loops(in.q, form)) return attend_backward_generic(dout, in, saved);
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dout, in.q, in.k, in.v, saved.out, saved.lse, 0.0, true);
  return {dq, dk, dv};
}

bool has_kernels(const at::Tensor& x, Form form) {
  return form == Form::kNative && gpu::has_rows(x);
}

// The kernels read rows of logits in vectors, so the vocabulary must be a multiple of the vector
// width.
bool has_logit_kernels(const at::Tensor& h, const at::Tensor& w) {
  return gpu::has_rows(h) && w.size(0) % 8 == 0;
}

// Calls `body` with the first token and the length of each sequence of a batch.
template <typename Body>
void for_each_sequence(std::span<const int64_t> starts, const Body& body) {
  for (size_t i = 0; i + 1 < starts.size(); ++i) body(starts[i], starts[i + 1] - starts[i]);
}

// Attention of all slots at once, padded to the longest.  The query heads of a key head are treated
// as several queries of that head, so keys and values are views.
at::Tensor decode_generic(const at::Tensor& q_BHD, const at::Tensor& k_cache,
                          const at::Tensor& v_cache, const CacheRows& rows) {
  const int64_t size = q_BHD.size(0), kv_heads = k_cache.size(1), head_dim = q_BHD.size(2);
  const auto cached = [&](const at::Tensor& cache) {
    return cache.narrow(0, 0, size).narrow(2, 0, rows.bias_B11L.size(3));
  };
  const at::Tensor q_BKGD = q_BHD.view({size, kv_heads, -1, head_dim});
  const at::Tensor bias = rows.bias_B11L.expand({size, kv_heads, q_BKGD.size(2), -1});
  return at::scaled_dot_product_attention(q_BKGD, cached(k_cache), cached(v_cache), bias)
      .reshape(q_BHD.sizes());
}

template <typename T>
void decode_with_loops(const at::Tensor& q, const at::Tensor& k_cache, const at::Tensor& v_cache,
                       const CacheRows& in, at::Tensor& out) {
  const int64_t heads = q.size(1);
  const int64_t head_dim = q.size(2);
  const int64_t group = heads / k_cache.size(1);
  const auto rows = static_cast<int64_t>(in.lengths.size());
  at::parallel_for(0, rows * heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scores;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t length = in.lengths[static_cast<size_t>(i / heads)];
      const int64_t cache = i / heads * k_cache.stride(0) + i % heads / group * k_cache.stride(1);
      if (scores.size() < static_cast<size_t>(length)) scores.resize(static_cast<size_t>(length));
      kernels::attend_one(length, head_dim, q.const_data_ptr<T>() + i * head_dim,
                          k_cache.const_data_ptr<T>() + cache, v_cache.const_data_ptr<T>() + cache,
                          scores.data(), out.mutable_data_ptr<T>() + i * head_dim);
    }
  });
}

}  // namespace

at::Tensor on_device(std::span<const int64_t> values, at::Device device) {
  const at::Tensor on_host =
      at::tensor(at::ArrayRef<int64_t>(values.data(), values.size()), at::kLong);
  return device.is_cuda() ? on_host.pin_memory().to(device, /*non_blocking=*/true) : on_host;
}

Extents make_extents(std::vector<int64_t> starts, at::Device device) {
  MC_CHECK(!starts.empty() && starts.front() == 0 && std::ranges::is_sorted(starts));
  Extents extents{std::move(starts), {}, 0, true};
  for (size_t i = 0; i + 1 < extents.starts.size(); ++i) {
    const int64_t length = extents.starts[i + 1] - extents.starts[i];
    if (length != extents.starts[1]) extents.are_equal = false;
    extents.longest = std::max(extents.longest, length);
  }
  extents.starts_int32 = on_device(extents.starts, device).to(at::kInt);
  return extents;
}

// True if PyTorch's kernel for concatenated sequences supports the tensor; its scale is the same as
// ours.
bool has_flash(const at::Tensor& q, Form form) {
  return form == Form::kNative && q.is_cuda() && q.size(2) % 8 == 0 && q.size(2) <= 256 &&
         (q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf);
}

AddedNorm add_rms_norm(const at::Tensor& x, at::Tensor branch, const at::Tensor& w, double epsilon,
                       Form form) {
  if (has_kernels(x, form)) {
    gpu::AddedNorm made = gpu::add_rms_norm(x, branch, w, epsilon);
    return {made.sum_Nh, {made.y_Nh, made.scale_N}};
  }
  const at::Tensor sum = branch.defined() ? branch.add_(x) : x;
  return {sum, rms_norm(sum, w, epsilon, form)};
}

Norm rms_norm(const at::Tensor& x, const at::Tensor& w, double epsilon, Form form) {
  if (has_kernels(x, form)) return add_rms_norm(x, {}, w, epsilon, form).norm;
  if (!has_loops(x, form)) return rms_norm_generic(x, w, epsilon);
  MC_CHECK(x.is_contiguous() && w.is_contiguous());
  Norm norm{at::empty_like(x), at::empty({x.size(0)}, x.options())};
  with_type(x, [&]<typename T>(T) {
    at::parallel_for(0, x.size(0), kRowsOfTask, [&](int64_t begin, int64_t end) {
      kernels::rms_norm({begin, end, x.size(1)}, x.const_data_ptr<T>(), w.const_data_ptr<T>(),
                        static_cast<T>(epsilon), norm.y_Nh.mutable_data_ptr<T>(),
                        norm.scale_N.mutable_data_ptr<T>());
    });
  });
  return norm;
}

void rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                       const at::Tensor& scale, at::Tensor& dx, at::Tensor& dw, Form form) {
  if (has_kernels(x, form)) return gpu::rms_norm_backward(dy, x, w, scale, dx, dw);
  if (!has_loops(x, form)) return rms_norm_backward_generic(dy, x, w, scale, dx, dw);
  MC_CHECK(dy.is_contiguous() && x.is_contiguous() && dx.is_contiguous());
  with_type(x, [&]<typename T>(T) { rms_norm_backward_loops<T>(dy, x, w, scale, dx, dw); });
}

at::Tensor swiglu(const at::Tensor& gate_up, Form form) {
  if (has_kernels(gate_up, form) && gate_up.size(1) % 16 == 0) {
    at::Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    gpu::swiglu_into(gate_up, y);
    return y;
  }
  if (!has_loops(gate_up, form)) {
    const at::Tensor gate = half(gate_up, 0).to(wide(gate_up));
    return (gate * at::sigmoid(gate) * half(gate_up, 1)).to(gate_up.scalar_type());
  }
  MC_CHECK(gate_up.is_contiguous());
  at::Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
  with_type(y, [&]<typename T>(T) {
    at::parallel_for(0, y.size(0), kRowsOfTask, [&](int64_t begin, int64_t end) {
      kernels::swiglu({begin, end, y.size(1)}, gate_up.const_data_ptr<T>(),
                      y.mutable_data_ptr<T>());
    });
  });
  return y;
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up, Form form) {
  if (has_kernels(gate_up, form) && gate_up.size(1) % 16 == 0) {
    return gpu::swiglu_backward(dy, gate_up);
  }
  at::Tensor d_gate_up = at::empty_like(gate_up);
  if (!has_loops(gate_up, form)) {
    const at::Tensor gate = half(gate_up, 0).to(wide(gate_up));
    const at::Tensor sigmoid = at::sigmoid(gate);
    const at::Tensor silu = gate * sigmoid;
    half(d_gate_up, 0).copy_(dy * half(gate_up, 1) * (sigmoid + silu * (1 - sigmoid)));
    half(d_gate_up, 1).copy_(dy * silu);
    return d_gate_up;
  }
  MC_CHECK(dy.is_contiguous() && gate_up.is_contiguous());
  with_type(dy, [&]<typename T>(T) {
    at::parallel_for(0, dy.size(0), kRowsOfTask, [&](int64_t begin, int64_t end) {
      kernels::swiglu_backward({begin, end, dy.size(1)}, dy.const_data_ptr<T>(),
                               gate_up.const_data_ptr<T>(), d_gate_up.mutable_data_ptr<T>());
    });
  });
  return d_gate_up;
}

namespace {

float scaled(float frequency, const RopeScaling& scaling) {
  const float wave = 2 * static_cast<float>(M_PI) / frequency;
  const auto positions = static_cast<float>(scaling.positions);
  const auto factor = static_cast<float>(scaling.factor);
  const auto low = static_cast<float>(scaling.low_factor);
  const auto high = static_cast<float>(scaling.high_factor);
  if (wave > positions / low) return frequency / factor;
  if (wave < positions / high) return frequency;
  const float share = (positions / wave - low) / (high - low);
  return (1 - share) * frequency / factor + share * frequency;
}

}  // namespace

// The table is computed in float32 as in transformers, because models were trained with its
// rounding.
RopeTable rope_table(int64_t positions, int64_t head_dim, double theta,
                     const std::optional<RopeScaling>& scaling) {
  std::vector<float> frequencies;
  for (int64_t j = 0; j < head_dim; j += 2) {
    const float power = static_cast<float>(j) / static_cast<float>(head_dim);
    const float frequency = 1.0F / std::pow(static_cast<float>(theta), power);
    frequencies.push_back(scaling ? scaled(frequency, *scaling) : frequency);
  }
  at::Tensor frequency = at::empty({head_dim / 2}, at::kFloat);
  std::copy(frequencies.begin(), frequencies.end(), frequency.mutable_data_ptr<float>());
  const at::Tensor angle = at::outer(at::arange(positions, at::kFloat), frequency);
  return {angle.cos(), angle.sin()};
}

void rope_(const at::Tensor& x, const at::Tensor& positions, const RopeTable& table, Direction turn,
           Form form) {
  const int sign = turn == Direction::kForward ? 1 : -1;
  if (!has_loops(x, form)) {
    const at::Tensor cos = table.cos_PD2.index_select(0, positions).unsqueeze(1);
    const at::Tensor sin = table.sin_PD2.index_select(0, positions).unsqueeze(1) * sign;
    const at::Tensor low = half(x, 0).to(wide(x)), high = half(x, 1).to(wide(x));
    const at::Tensor turned = low * cos - high * sin;
    half(x, 1).copy_(high * cos + low * sin);
    half(x, 0).copy_(turned);
    return;
  }
  MC_CHECK(x.stride(2) == 1 && x.stride(1) == x.size(2));
  with_type(x, [&]<typename T>(T) {
    const kernels::Rotation<T> rotation{x.size(1),
                                        x.stride(0),
                                        positions.const_data_ptr<int64_t>(),
                                        table.cos_PD2.const_data_ptr<T>(),
                                        table.sin_PD2.const_data_ptr<T>(),
                                        static_cast<T>(sign)};
    at::parallel_for(0, x.size(0), kRowsOfTask, [&](int64_t begin, int64_t end) {
      kernels::rotate({begin, end, x.size(2)}, rotation, x.mutable_data_ptr<T>());
    });
  });
}

namespace {

// For packed sequences, cuDNN's kernel is about twice as fast as flash attention, but it needs some
// 50 ms of planning for every new shape.  So it is used for sequences of equal length, or for a
// single long one.
bool is_dense(const at::Tensor& q, const Extents& extents) {
  return extents.are_equal && q.size(2) <= kDenseHeadDimMax &&
         extents.longest >= (extents.starts.size() > 2 ? kDenseLengthMin : kDenseAloneMin);
}

// Reshapes [T, H, D] to [sequences, H, length, D].
at::Tensor dense(const at::Tensor& x_THD, const Extents& extents) {
  return x_THD.unflatten(0, {-1, extents.longest}).transpose(1, 2);
}

at::Tensor packed(const at::Tensor& x_BHLD) {
  return x_BHLD.transpose(1, 2).flatten(0, 1).contiguous();
}

Attention dense_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const Extents& extents) {
  const auto made = at::_scaled_dot_product_cudnn_attention(
      dense(q, extents), dense(k, extents), dense(v, extents), std::nullopt,
      /*compute_log_sumexp=*/true, 0.0, /*is_causal=*/true, false);
  return {packed(std::get<0>(made)), std::get<1>(made)};
}

AttentionInputs dense_attention_backward(const at::Tensor& dout, const AttentionInputs& in,
                                         const Attention& saved, const Extents& extents) {
  // Random state is needed only for dropout.
  const at::Tensor unused = at::empty({}, dout.options().dtype(at::kLong));
  const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
      dense(dout, extents), dense(in.q_THD, extents), dense(in.k_TKD, extents),
      dense(in.v_TKD, extents), dense(saved.out_THD, extents), saved.lse_HT, unused, unused, {}, {},
      {}, extents.longest, extents.longest, 0.0, /*is_causal=*/true);
  return {packed(dq), packed(dk), packed(dv)};
}

}  // namespace

Attention attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Extents& extents, Form form) {
  if (has_flash(q, form)) {
    if (is_dense(q, extents)) return dense_attention(q, k, v, extents);
    const auto made = at::_flash_attention_forward(
        q, k, v, extents.starts_int32, extents.starts_int32, extents.longest, extents.longest, 0.0,
        /*is_causal=*/true, false);
    return {std::get<0>(made), std::get<1>(made)};
  }
  Attention result{at::empty({q.size(0), q.size(1), q.size(2)}, q.options()),
                   at::empty({q.size(1), q.size(0)}, q.options().dtype(wide(q)))};
  for_each_sequence(extents.starts, [&](int64_t start, int64_t length) {
    const SequenceOut one = attend(sequence_of({q, k, v}, start, length), form);
    result.out_THD.narrow(0, start, length).copy_(by_token(one.out));
    result.lse_HT.narrow(1, start, length).copy_(one.lse.reshape({q.size(1), length}));
  });
  return result;
}

AttentionInputs flash_attention_backward(const at::Tensor& dout, const AttentionInputs& in,
                                         const Attention& saved, const Extents& extents) {
  if (is_dense(in.q_THD, extents)) return dense_attention_backward(dout, in, saved, extents);
  // Random state is needed only for dropout.
  const at::Tensor unused = at::empty({2}, extents.starts_int32.options().dtype(at::kLong));
  const auto [dq, dk, dv] =
      at::_flash_attention_backward(dout, in.q_THD, in.k_TKD, in.v_TKD, saved.out_THD, saved.lse_HT,
                                    extents.starts_int32, extents.starts_int32, extents.longest,
                                    extents.longest, 0.0, /*is_causal=*/true, unused, unused);
  return {dq, dk, dv};
}

void attention_backward(const at::Tensor& dout, const AttentionInputs& in, const Attention& saved,
                        const Extents& extents, const AttentionInputs& gradients, Form form) {
  if (has_flash(in.q_THD, form)) {
    const AttentionInputs made = flash_attention_backward(dout, in, saved, extents);
    gradients.q_THD.copy_(made.q_THD);
    gradients.k_TKD.copy_(made.k_TKD);
    gradients.v_TKD.copy_(made.v_TKD);
    return;
  }
  const int64_t kv_heads = in.k_TKD.size(1);
  for_each_sequence(extents.starts, [&](int64_t start, int64_t length) {
    const auto part = [&](const at::Tensor& x) {
      return by_kv_head(x.narrow(0, start, length), kv_heads);
    };
    const at::Tensor lse = saved.lse_HT.narrow(1, start, length).reshape({kv_heads, -1, length});
    const Sequence one = attend_backward(part(dout), sequence_of(in, start, length),
                                         {part(saved.out_THD), lse}, form);
    gradients.q_THD.narrow(0, start, length).copy_(by_token(one.q));
    gradients.k_TKD.narrow(0, start, length).copy_(by_token(one.k.sum(1, /*keepdim=*/true)));
    gradients.v_TKD.narrow(0, start, length).copy_(by_token(one.v.sum(1, /*keepdim=*/true)));
  });
}

CacheRows::CacheRows(std::span<const int64_t> lengths_in, const at::Tensor& like, Form form)
    : lengths(lengths_in),
      slots_B(at::arange(static_cast<int64_t>(lengths_in.size()),
                         at::TensorOptions(at::kLong).device(like.device()))),
      lengths_B(on_device(lengths_in, like.device())) {
  if (has_loops(like, form)) return;
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const at::Tensor hidden =
      at::arange(longest, slots_B.options()).ge(lengths_B.view({-1, 1, 1, 1}));
  bias_B11L = at::zeros(hidden.sizes(), like.options())
                  .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

at::Tensor attention_decode(const at::Tensor& q, const at::Tensor& k_cache,
                            const at::Tensor& v_cache, const CacheRows& rows, Form form) {
  if (!has_loops(q, form)) return decode_generic(q, k_cache, v_cache, rows);
  MC_CHECK(q.is_contiguous() && k_cache.is_contiguous() && v_cache.is_contiguous());
  at::Tensor out = at::empty_like(q);
  with_type(q, [&]<typename T>(T) { decode_with_loops<T>(q, k_cache, v_cache, rows, out); });
  return out;
}

int64_t head_chunk_rows(int64_t vocab, bool is_cpu) {
  const int64_t bytes = is_cpu ? kHeadChunkBytesCpu : kHeadChunkBytesDevice;
  return std::max(kHeadChunkRowsMin, bytes / (static_cast<int64_t>(sizeof(float)) * vocab));
}

namespace {

void linear_backward_into(const at::Tensor& dy, const at::Tensor& w, at::Tensor dx) {
  at::mm_out(dx, dy, w);
}

// Calls `body(start, count)` for parts of the rows of h.
template <typename Body>
void in_chunks(const at::Tensor& h_Nh, const at::Tensor& w_Vh, const Body& body) {
  const int64_t chunk = head_chunk_rows(w_Vh.size(0), h_Nh.is_cpu());
  for (int64_t start = 0; start < h_Nh.size(0); start += chunk) {
    body(start, std::min(chunk, h_Nh.size(0) - start));
  }
}

TokenLoss token_loss_by_kernels(const at::Tensor& h, const at::Tensor& w, const at::Tensor& targets,
                                double weight, at::Tensor& dw) {
  const at::Tensor log_prob = at::empty({h.size(0)}, h.options().dtype(at::kDouble));
  at::Tensor dh = at::empty_like(h);
  in_chunks(h, w, [&](int64_t start, int64_t count) {
    const at::Tensor h_part = h.narrow(0, start, count);
    const at::Tensor logits = linear(h_part, w);
    gpu::score_targets_backward(logits, targets.narrow(0, start, count), 1, {}, -weight,
                                {log_prob.narrow(0, start, count), {}});
    linear_backward_into(logits, w, dh.narrow(0, start, count));
    add_weight_gradient(dw, logits, h_part);
  });
  return {log_prob.sum().neg(), dh};
}

}  // namespace

TokenLoss token_loss(const at::Tensor& h, const at::Tensor& w, const at::Tensor& targets,
                     double weight, at::Tensor& dw) {
  MC_CHECK(h.size(0) == targets.numel() && dw.sizes() == w.sizes());
  if (has_logit_kernels(h, w)) return token_loss_by_kernels(h, w, targets, weight, dw);
  TokenLoss loss{at::zeros({}, h.options().dtype(at::kDouble)), at::empty_like(h)};
  in_chunks(h, w, [&](int64_t start, int64_t count) {
    const at::Tensor h_part = h.narrow(0, start, count);
    const at::Tensor target = targets.narrow(0, start, count).unsqueeze(1);
    at::Tensor logits = linear(h_part, w);
    if (logits.scalar_type() != wide(h)) logits = logits.to(wide(h));
    const at::Tensor lse = at::logsumexp(logits, 1, /*keepdim=*/true);
    loss.sum.add_((lse - logits.gather(1, target)).sum(at::kDouble));
    // The logits now become their own gradient: weight (softmax - one_hot(target)).
    logits.sub_(lse).exp_();
    logits.scatter_add_(1, target, at::full({count, 1}, -1.0, logits.options()));
    const at::Tensor gradient = logits.mul_(weight).to(h.scalar_type());
    loss.dh_Nh.narrow(0, start, count).copy_(linear_backward(gradient, w));
    add_weight_gradient(dw, gradient, h_part);
  });
  return loss;
}

namespace {

// The log softmax(h w^T / temperature) of some rows, in float32 at least.
at::Tensor log_softmax_of(const at::Tensor& h_part, const at::Tensor& w, double temperature) {
  at::Tensor logits = linear(h_part, w);
  if (logits.scalar_type() != wide(h_part)) logits = logits.to(wide(h_part));
  if (temperature != 1) logits.div_(temperature);
  return logits.sub_(at::logsumexp(logits, 1, /*keepdim=*/true));
}

}  // namespace

TokenLogProbs token_log_probs(const at::Tensor& h, const at::Tensor& w, const at::Tensor& targets,
                              double temperature) {
  const auto options = h.options().dtype(at::kDouble);
  TokenLogProbs all{at::empty({h.size(0)}, options), at::empty({h.size(0)}, options)};
  const bool has_kernels = has_logit_kernels(h, w);
  in_chunks(h, w, [&](int64_t start, int64_t count) {
    if (has_kernels) {
      gpu::score_targets(
          linear(h.narrow(0, start, count), w), targets.narrow(0, start, count), temperature,
          {all.log_prob_N.narrow(0, start, count), all.entropy_N.narrow(0, start, count)});
      return;
    }
    const at::Tensor target = targets.narrow(0, start, count).unsqueeze(1);
    const at::Tensor log_p = log_softmax_of(h.narrow(0, start, count), w, temperature);
    all.log_prob_N.narrow(0, start, count).copy_(log_p.gather(1, target).squeeze(1));
    all.entropy_N.narrow(0, start, count).copy_(log_p.exp().mul_(log_p).sum(1).neg_());
  });
  return {all.log_prob_N.cpu(), all.entropy_N.cpu()};
}

at::Tensor token_log_probs_backward(const at::Tensor& g, const at::Tensor& h, const at::Tensor& w,
                                    const at::Tensor& targets, double temperature, at::Tensor& dw) {
  at::Tensor dh = at::empty_like(h);
  const bool has_kernels = has_logit_kernels(h, w);
  const at::Tensor g_float = has_kernels ? g.to(h.device(), at::kFloat) : g;
  in_chunks(h, w, [&](int64_t start, int64_t count) {
    const at::Tensor h_part = h.narrow(0, start, count);
    if (has_kernels) {
      const at::Tensor logits = linear(h_part, w);
      gpu::score_targets_backward(logits, targets.narrow(0, start, count), temperature,
                                  g_float.narrow(0, start, count), 0, {});
      linear_backward_into(logits, w, dh.narrow(0, start, count));
      add_weight_gradient(dw, logits, h_part);
      return;
    }
    const at::Tensor target = targets.narrow(0, start, count).unsqueeze(1);
    // (one_hot(target) - softmax) g / temperature
    at::Tensor d = log_softmax_of(h_part, w, temperature).exp_().neg_();
    d.scatter_add_(1, target, at::full({count, 1}, 1.0, d.options()));
    const at::Tensor scale = g.narrow(0, start, count).to(d.options()).unsqueeze(1);
    const at::Tensor gradient = d.mul_(scale).div_(temperature).to(h.scalar_type());
    dh.narrow(0, start, count).copy_(linear_backward(gradient, w));
    add_weight_gradient(dw, gradient, h_part);
  });
  return dh;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& w) { return multiply(x, w); }

at::Tensor linear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  at::Tensor y = multiply(x, w);
  return bias.defined() ? y.add_(bias) : y;
}

at::Tensor linear_backward(const at::Tensor& dy, const at::Tensor& w) {
  return multiply(dy, w.t());
}

void add_weight_gradient(at::Tensor dw, const at::Tensor& dy, const at::Tensor& x) {
  if (dy.is_cuda() && dw.scalar_type() == at::kFloat && dy.scalar_type() != at::kFloat) {
    // The float32 accumulation happens inside the product.
    at::addmm_out(dw, dw, dy.t(), x, at::kFloat);
    return;
  }
  dw.add_(multiply(dy.t(), x.t()));
}

void add_bias_gradient(at::Tensor db, const at::Tensor& dy) { db.add_(dy.sum(0, false, wide(dy))); }

}  // namespace mc::model::ops
