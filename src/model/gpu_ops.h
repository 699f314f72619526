// SPDX-License-Identifier: Apache-2.0
//
// The operators of ops.h as kernels of our own on a GPU, for tensors in bfloat16.
//
// Each is one pass over memory where PyTorch's operators would take several.  Letters in names are
// those of ops.h.  All tensors are contiguous, but for heads that are views into qkv.  Errors are
// exceptions.
#ifndef MC_MODEL_GPU_OPS_H_
#define MC_MODEL_GPU_OPS_H_

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "model/gpu_module.h"

namespace mc::model::gpu {

// There are kernels for rows like these: on a GPU, in bfloat16, of a fitting width.
bool has_rows(const at::Tensor& x);
bool has_heads(const at::Tensor& qkv, const Sizes& sizes);

// The sum is x + branch, or x itself where `branch` is undefined; y is its norm, and scale_N is for
// the backward.
struct AddedNorm {
  at::Tensor sum_Nh;
  at::Tensor y_Nh;
  at::Tensor scale_N;
};
AddedNorm add_rms_norm(const at::Tensor& x_Nh, const at::Tensor& branch_Nh, const at::Tensor& w_h,
                       double epsilon);
// The same into tensors that are there; the sum goes to x.
void add_rms_norm_into(const at::Tensor& x_Nh, const at::Tensor& branch_Nh, const at::Tensor& w_h,
                       double epsilon, const at::Tensor& y_Nh);
void rms_norm_backward(const at::Tensor& dy_Nh, const at::Tensor& x_Nh, const at::Tensor& w_h,
                       const at::Tensor& scale_N, const at::Tensor& dx_Nh, const at::Tensor& dw_h);

// The inputs of make_heads: the product of qkv, positions and angles, and the weights of the heads'
// norms (undefined where the family has none).
struct HeadInputs {
  Sizes sizes;
  at::Tensor qkv;
  at::Tensor positions_T;
  at::Tensor cos_PD2;
  at::Tensor sin_PD2;
  at::Tensor q_norm;
  at::Tensor k_norm;
  double epsilon = 0;
};
// Queries and keys, normed and turned: within qkv where there are no norms, else in new tensors.
struct MadeHeads {
  at::Tensor q_THD;
  at::Tensor k_TKD;
  at::Tensor q_scale;
  at::Tensor k_scale;
};
MadeHeads make_heads(const HeadInputs& in);
// For a step of decoding: turned queries in place; keys and values go into the cache.
void make_heads_into(const HeadInputs& in, const at::Tensor& k_cache_SKPD,
                     const at::Tensor& v_cache_SKPD);

struct HeadGradients {
  at::Tensor dq_THD;
  at::Tensor dk_TKD;
  at::Tensor dv_TKD;
};
// The gradient of qkv; those of the norms' weights are added to dq_norm and dk_norm.
at::Tensor make_heads_backward(const HeadInputs& in, const MadeHeads& made,
                               const HeadGradients& gradients, const at::Tensor& dq_norm,
                               const at::Tensor& dk_norm);

// The queries in the first columns of qkv against the cache, up to and with each slot's position.
// `parts` is room for parts_size numbers, or undefined where that is 0.
int64_t parts_size(const Sizes& sizes, int64_t slots);
void attend_cache(const HeadInputs& in, const at::Tensor& k_cache_SKPD,
                  const at::Tensor& v_cache_SKPD, const at::Tensor& out_Bx,
                  const at::Tensor& parts);

// Keys and values of prompts into slots: pair i fills slot slot_of_pair[i].
struct CachePairs {
  at::Tensor starts;          // First token of each prompt, and their number.
  at::Tensor prompt_of_pair;  // int64, as the others.
  at::Tensor slot_of_pair;
  int64_t longest = 0;
};
void fill_cache(const Sizes& sizes, const at::Tensor& k_TKD, const at::Tensor& v_TKD,
                const CachePairs& pairs, const at::Tensor& k_cache_SKPD,
                const at::Tensor& v_cache_SKPD);

void swiglu_into(const at::Tensor& gate_up_N2F, const at::Tensor& y_NF);
at::Tensor swiglu_backward(const at::Tensor& dy_NF, const at::Tensor& gate_up_N2F);

// to[rows[i]] += from[i], in float32.
void add_rows(const at::Tensor& from_Nh, const at::Tensor& rows_N, const at::Tensor& to_Vh);
void gather_rows(const at::Tensor& from_Vh, const at::Tensor& rows_N, const at::Tensor& to_Nh);

// The scores of each row's target under softmax(logits / temperature); results in float64, and
// undefined ones are not made.
struct TargetScores {
  at::Tensor log_prob_N;
  at::Tensor entropy_N;
};
void score_targets(const at::Tensor& logits_NV, const at::Tensor& targets_N, double temperature,
                   const TargetScores& results);
// The same, and the logits become the gradient of the sum of c log_prob: c is `coefficients`
// (float32), or `coefficient` where that is undefined.
void score_targets_backward(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                            double temperature, const at::Tensor& coefficients_N,
                            double coefficient, const TargetScores& results);

// The norm of a float32 vector, a float64 number where the vector is.
at::Tensor norm_of(const at::Tensor& x);

struct AdamWStep {
  float lr, beta1, beta2, epsilon, decay, norm_max;
  float correction1, correction2;  // 1 - beta^step
};
// One step on a part of the parameters, with gradients that are shortened to norm_max.  `copy` gets
// the weights in bfloat16 and may be undefined.  Nothing changes where `norm` is not finite.
void adamw(const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& first,
           const at::Tensor& second, const at::Tensor& copy, const at::Tensor& norm,
           const AdamWStep& step);

// The next token of each row, by the rules of choose_token (sampling.h).  uniforms_CB and results
// ([C, B, 2], token and log-probability) have a row for each step that is counted by `step`.
struct Choosing {
  double temperature = 1;
  double top_p = 1;
  at::Tensor uniforms_CB;
  at::Tensor step;  // int32
  at::Tensor tokens_B;
  at::Tensor results;
};
void choose(const at::Tensor& logits_BV, const Choosing& choosing);
// The step's count grows by one, and so do positions below the largest.
void advance(const at::Tensor& positions_B, int64_t position_max, const at::Tensor& step);

}  // namespace mc::model::gpu

#endif  // MC_MODEL_GPU_OPS_H_
