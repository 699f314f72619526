// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_ops.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "core/check.h"

namespace mc::model::gpu {
namespace {

constexpr int64_t kVector = 8;  // The number of elements that a thread reads at once.
constexpr int64_t kWidthMax = 8192;
constexpr int64_t kHeadDimMax = 256;
constexpr int64_t kGroupMax = 16;
// These constants must equal those of gpu_kernels.cu.
constexpr int64_t kNormWarps = 8;
constexpr int64_t kWarp = 32;
constexpr int64_t kHeadThreads = 256;
constexpr int64_t kDecodeThreads = 256;
constexpr int64_t kSoftmaxThreads = 512;
constexpr int64_t kChooseThreads = 1024;
constexpr int64_t kThreads = 256;
constexpr int64_t kOptimizerNumbers = 1024;  // The number of elements that a block processes.
// The number of blocks, enough to fill a current GPU; their partial sums are added afterwards.
constexpr int64_t kNormBlocks = 528;
constexpr int64_t kDecodeBlocks = 256;
constexpr int64_t kPartWidth = 10;

int64_t blocks_of(int64_t count, int64_t of_block) { return (count + of_block - 1) / of_block; }

// The pointer to the data; null if the tensor is undefined.
void* data(const at::Tensor& x) {
  return x.defined() ? const_cast<void*>(x.const_data_ptr()) : nullptr;
}

void add_column_sums(const at::Tensor& parts, const at::Tensor& to) {
  MC_CHECK(to.scalar_type() == at::kFloat && to.is_contiguous());
  launch(Kernel::kAddColumnSums, {}, {blocks_of(parts.size(1), kWarp)}, kThreads, data(parts),
         static_cast<int>(parts.size(0)), static_cast<int>(parts.size(1)), data(to));
}

void launch_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& w, double epsilon,
                 const AddedNorm& to) {
  MC_CHECK(x.is_contiguous() && (!branch.defined() || branch.is_contiguous()));
  launch(Kernel::kAddRmsNorm, {.width = x.size(1)}, {blocks_of(x.size(0), kNormWarps)},
         kNormWarps * kWarp, data(x), data(branch), data(w), static_cast<float>(epsilon), x.size(0),
         data(to.sum_Nh), data(to.y_Nh), data(to.scale_N));
}

struct CacheTarget {
  at::Tensor keys;
  at::Tensor values;
};

void launch_heads(const HeadInputs& in, const RotatedHeads& to, const CacheTarget& cache) {
  MC_CHECK(in.qkv.is_contiguous());
  const Sizes& sizes = in.sizes;
  const int64_t heads = sizes.heads + sizes.kv_heads * (cache.keys.defined() ? 2 : 1);
  const int64_t units = kHeadThreads / (sizes.head_dim / 2 / kVector);
  launch(Kernel::kMakeHeads, sizes, {blocks_of(in.qkv.size(0) * heads, units)}, kHeadThreads,
         data(in.qkv), data(in.positions_T), data(in.cos_PD2), data(in.sin_PD2), data(in.q_norm),
         data(in.k_norm), static_cast<float>(in.epsilon), in.qkv.size(0), data(to.q_THD),
         to.q_THD.stride(0), data(to.k_TKD), to.k_TKD.defined() ? to.k_TKD.stride(0) : 0,
         data(to.q_scale), data(to.k_scale), data(cache.keys), data(cache.values),
         cache.keys.defined() ? cache.keys.size(2) : 0);
}

at::Tensor heads_in(const HeadInputs& in, int64_t first, int64_t count) {
  return in.qkv.narrow(1, first * in.sizes.head_dim, count * in.sizes.head_dim)
      .view({in.qkv.size(0), count, in.sizes.head_dim});
}

// The number of parts into which a slot's tokens are split, so that a few slots also keep the GPU
// busy.
int64_t splits_of(const Sizes& sizes, int64_t slots) {
  return std::clamp<int64_t>(kDecodeBlocks / (slots * sizes.kv_heads), 1, 16);
}

}  // namespace

bool has_rows(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.size(-1) % kVector == 0 &&
         x.size(-1) <= kWidthMax;
}

bool has_heads(const at::Tensor& qkv, const Sizes& sizes) {
  const int64_t lanes = sizes.head_dim / 2 / kVector;
  return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16 && sizes.head_dim <= kHeadDimMax &&
         lanes > 0 && sizes.head_dim == lanes * 2 * kVector && (lanes & (lanes - 1)) == 0 &&
         sizes.heads % sizes.kv_heads == 0 && sizes.heads / sizes.kv_heads <= kGroupMax;
}

AddedNorm add_rms_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& w,
                       double epsilon) {
  const AddedNorm made{branch.defined() ? at::empty_like(x) : x, at::empty_like(x),
                       at::empty({x.size(0)}, x.options().dtype(at::kFloat))};
  launch_norm(x, branch, w, epsilon, made);
  return made;
}

void add_rms_norm_into(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& w,
                       double epsilon, const at::Tensor& y) {
  launch_norm(x, branch, w, epsilon, {x, y, {}});
}

void rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                       const at::Tensor& scale, const at::Tensor& dx, const at::Tensor& dw) {
  MC_CHECK(dy.is_contiguous() && x.is_contiguous() && dx.is_contiguous());
  const int64_t blocks = std::min(kNormBlocks, blocks_of(x.size(0), kNormWarps));
  const at::Tensor parts = at::empty({blocks, x.size(1)}, scale.options());
  launch(Kernel::kRmsNormBackward, {.width = x.size(1)}, {blocks}, kNormWarps * kWarp, data(dy),
         data(x), data(w), data(scale), x.size(0), data(dx), data(parts));
  add_column_sums(parts, dw);
}

RotatedHeads make_heads(const HeadInputs& in) {
  const Sizes& sizes = in.sizes;
  RotatedHeads made{
      heads_in(in, 0, sizes.heads), heads_in(in, sizes.heads, sizes.kv_heads), {}, {}};
  if (in.q_norm.defined()) {
    const auto scales = in.qkv.options().dtype(at::kFloat);
    const int64_t tokens = in.qkv.size(0);
    made = {at::empty({tokens, sizes.heads, sizes.head_dim}, in.qkv.options()),
            at::empty({tokens, sizes.kv_heads, sizes.head_dim}, in.qkv.options()),
            at::empty({tokens * sizes.heads}, scales),
            at::empty({tokens * sizes.kv_heads}, scales)};
  }
  launch_heads(in, made, {});
  return made;
}

void make_heads_into(const HeadInputs& in, const at::Tensor& k_cache, const at::Tensor& v_cache) {
  launch_heads(in, {heads_in(in, 0, in.sizes.heads), {}, {}, {}}, {k_cache, v_cache});
}

at::Tensor make_heads_backward(const HeadInputs& in, const RotatedHeads& made,
                               const HeadGradients& d, const at::Tensor& dq_norm,
                               const at::Tensor& dk_norm) {
  MC_CHECK(d.dq_THD.is_contiguous() && d.dk_TKD.is_contiguous() && d.dv_TKD.is_contiguous());
  const int64_t tokens = in.qkv.size(0);
  const int64_t units = kHeadThreads / (in.sizes.head_dim / 2 / kVector);
  const int64_t blocks = std::min(kNormBlocks, blocks_of(tokens * in.sizes.heads, units));
  at::Tensor d_qkv = at::empty_like(in.qkv);
  at::Tensor q_parts, k_parts;
  if (in.q_norm.defined()) {
    q_parts = at::empty({blocks, in.sizes.head_dim}, in.qkv.options().dtype(at::kFloat));
    k_parts = at::empty_like(q_parts);
  }
  launch(Kernel::kMakeHeadsBackward, in.sizes, {blocks}, kHeadThreads, data(d.dq_THD),
         data(d.dk_TKD), data(d.dv_TKD), data(in.qkv), data(in.positions_T), data(in.cos_PD2),
         data(in.sin_PD2), data(in.q_norm), data(in.k_norm), data(made.q_scale), data(made.k_scale),
         tokens, data(d_qkv), data(q_parts), data(k_parts));
  if (in.q_norm.defined()) {
    add_column_sums(q_parts, dq_norm);
    add_column_sums(k_parts, dk_norm);
  }
  return d_qkv;
}

int64_t parts_size(const Sizes& sizes, int64_t slots) {
  const int64_t splits = splits_of(sizes, slots);
  return splits == 1 ? 0 : slots * sizes.heads * splits * (sizes.head_dim / kVector) * kPartWidth;
}

void attend_cache(const HeadInputs& in, const at::Tensor& k_cache, const at::Tensor& v_cache,
                  const at::Tensor& out, const at::Tensor& parts) {
  const int64_t slots = in.qkv.size(0);
  const int64_t splits = splits_of(in.sizes, slots);
  MC_CHECK((splits > 1) == parts.defined());
  launch(Kernel::kAttendCache, in.sizes, {slots, in.sizes.kv_heads, splits}, kDecodeThreads,
         data(in.qkv), data(k_cache), data(v_cache), data(in.positions_T), k_cache.size(2),
         in.qkv.stride(0), data(out), data(parts));
  if (splits == 1) return;
  const int64_t heads = slots * in.sizes.heads;
  launch(Kernel::kJoinParts, in.sizes, {blocks_of(heads * in.sizes.head_dim / kVector, kThreads)},
         kThreads, data(parts), static_cast<int>(splits), heads, data(out));
}

void fill_cache(const Sizes& sizes, const at::Tensor& k, const at::Tensor& v,
                const CachePairs& pairs, const at::Tensor& k_cache, const at::Tensor& v_cache) {
  const int64_t vectors = pairs.longest * sizes.kv_heads * sizes.head_dim / kVector;
  const Grid grid{std::min<int64_t>(32, blocks_of(vectors, kThreads)), pairs.slot_of_pair.size(0)};
  launch(Kernel::kFillCache, sizes, grid, kThreads, data(k), data(v), k.stride(0), v.stride(0),
         data(pairs.starts), data(pairs.prompt_of_pair), data(pairs.slot_of_pair), k_cache.size(2),
         data(k_cache), data(v_cache));
}

void swiglu_into(const at::Tensor& gate_up, const at::Tensor& y) {
  MC_CHECK(gate_up.is_contiguous());
  launch(Kernel::kSwiglu, {}, {blocks_of(y.numel(), kThreads * kVector)}, kThreads, data(gate_up),
         y.size(0), static_cast<int>(y.size(1)), data(y));
}

at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up) {
  MC_CHECK(dy.is_contiguous() && gate_up.is_contiguous());
  at::Tensor d_gate_up = at::empty_like(gate_up);
  launch(Kernel::kSwigluBackward, {}, {blocks_of(dy.numel(), kThreads * kVector)}, kThreads,
         data(dy), data(gate_up), dy.size(0), static_cast<int>(dy.size(1)), data(d_gate_up));
  return d_gate_up;
}

void add_rows(const at::Tensor& from, const at::Tensor& rows, const at::Tensor& to) {
  MC_CHECK(from.is_contiguous() && to.scalar_type() == at::kFloat);
  launch(Kernel::kAddRows, {}, {blocks_of(from.numel(), kThreads * kVector)}, kThreads, data(from),
         data(rows), from.size(0), static_cast<int>(from.size(1)), data(to));
}

void gather_rows(const at::Tensor& from, const at::Tensor& rows, const at::Tensor& to) {
  launch(Kernel::kGatherRows, {}, {blocks_of(to.numel(), kThreads * kVector)}, kThreads, data(from),
         data(rows), to.size(0), static_cast<int>(to.size(1)), data(to));
}

namespace {

struct Gradient {
  at::Tensor coefficients;
  double coefficient = 0;
  bool is_wanted = false;
};

void launch_log_softmax(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                        const Gradient& gradient, const TargetScores& results) {
  MC_CHECK(logits.is_contiguous());
  launch(Kernel::kLogSoftmaxRow, {}, {logits.size(0)}, kSoftmaxThreads, data(logits), data(targets),
         logits.size(1), static_cast<float>(1 / temperature), data(gradient.coefficients),
         static_cast<float>(gradient.coefficient), static_cast<int>(gradient.is_wanted),
         data(results.log_prob_N), data(results.entropy_N));
}

}  // namespace

void score_targets(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                   const TargetScores& results) {
  launch_log_softmax(logits, targets, temperature, {}, results);
}

void score_targets_backward(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                            const at::Tensor& coefficients, double coefficient,
                            const TargetScores& results) {
  launch_log_softmax(logits, targets, temperature, {coefficients, coefficient, true}, results);
}

at::Tensor norm_of(const at::Tensor& x) {
  const at::Tensor parts = at::empty({kNormBlocks}, x.options().dtype(at::kDouble));
  launch(Kernel::kSumSquares, {}, {kNormBlocks}, kThreads, data(x), x.numel(), data(parts));
  return parts.sum().sqrt();
}

void adamw(const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& first,
           const at::Tensor& second, const at::Tensor& copy, const at::Tensor& norm,
           const AdamWStep& step) {
  if (weights.numel() == 0) return;
  launch(Kernel::kAdamW, {}, {blocks_of(weights.numel(), kOptimizerNumbers)}, kThreads,
         data(weights), data(gradients), data(first), data(second), data(copy), weights.numel(),
         data(norm), step);
}

void choose(const at::Tensor& logits, const ChoiceOptions& o) {
  launch(Kernel::kChoose, {}, {logits.size(0)}, kChooseThreads, data(logits),
         static_cast<int>(logits.size(1)), o.temperature, o.top_p, data(o.uniforms_CB),
         data(o.step), static_cast<int>(logits.size(0)), data(o.tokens_B), data(o.results));
}

void advance(const at::Tensor& positions, int64_t position_max, const at::Tensor& step) {
  launch(Kernel::kAdvance, {}, {blocks_of(positions.size(0), kThreads)}, kThreads, data(positions),
         static_cast<int>(positions.size(0)), position_max, data(step));
}

}  // namespace mc::model::gpu
