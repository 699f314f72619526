// SPDX-License-Identifier: Apache-2.0
//
// The operators of ops.h as our own GPU kernels, for tensors in bfloat16.
//
// Each is one pass over memory where PyTorch's operators would take several.  The letters in names
// are explained in ops.h.  All tensors are contiguous, except heads that are views into qkv.
// Errors are exceptions.
#ifndef MC_MODEL_GPU_OPS_H_
#define MC_MODEL_GPU_OPS_H_

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "model/gpu_module.h"

namespace mc::model::gpu {

// True if the kernels support rows of this kind: on a GPU, in bfloat16, of a supported width.
bool has_rows(const at::Tensor& x);
bool has_heads(const at::Tensor& qkv, const Sizes& sizes);

// The sum is x + branch, or x if `branch` is undefined; y is its norm; the backward pass needs
// scale_N.
struct AddedNorm {
  at::Tensor sum_Nh;
  at::Tensor y_Nh;
  at::Tensor scale_N;
};
AddedNorm add_rms_norm(const at::Tensor& x_Nh, const at::Tensor& branch_Nh, const at::Tensor& w_h,
                       double epsilon);
// Writes the results into existing tensors; the sum replaces x.
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
// Normalized and rotated queries and keys: inside qkv if the family has no norms, else in new
// tensors.
struct RotatedHeads {
  at::Tensor q_THD;
  at::Tensor k_TKD;
  at::Tensor q_scale;
  at::Tensor k_scale;
};
RotatedHeads make_heads(const HeadInputs& in);
// Prepares a decoding step: rotates queries in place and writes keys and values into the cache.
void make_heads_into(const HeadInputs& in, const at::Tensor& k_cache_SKPD,
                     const at::Tensor& v_cache_SKPD);

struct HeadGradients {
  at::Tensor dq_THD;
  at::Tensor dk_TKD;
  at::Tensor dv_TKD;
};
// Returns the gradient of qkv; adds those of the norms' weights to dq_norm and dk_norm.
at::Tensor make_heads_backward(const HeadInputs& in, const RotatedHeads& made,
                               const HeadGradients& gradients, const at::Tensor& dq_norm,
                               const at::Tensor& dk_norm);

// Attention of the queries in the first columns of qkv to the cache, up to and including each
// slot's position. `parts` has parts_size elements; it may be undefined if that is 0.
int64_t parts_size(const Sizes& sizes, int64_t slots);
void attend_cache(const HeadInputs& in, const at::Tensor& k_cache_SKPD,
                  const at::Tensor& v_cache_SKPD, const at::Tensor& out_Bx,
                  const at::Tensor& parts);

// The pairs of prompts and slots for filling the cache: pair i fills slot slot_of_pair[i].
struct CachePairs {
  at::Tensor starts;          // The first token of each prompt, and the total number of tokens.
  at::Tensor prompt_of_pair;  // All three are int64.
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

// The scores of each row's target under softmax(logits / temperature), in float64.  Results whose
// tensor is undefined are not computed.
struct TargetScores {
  at::Tensor log_prob_N;
  at::Tensor entropy_N;
};
void score_targets(const at::Tensor& logits_NV, const at::Tensor& targets_N, double temperature,
                   const TargetScores& results);
// Computes the scores and replaces the logits by the gradient of the sum of c log_prob, where c is
// `coefficients` (float32), or `coefficient` if that is undefined.
void score_targets_backward(const at::Tensor& logits_NV, const at::Tensor& targets_N,
                            double temperature, const at::Tensor& coefficients_N,
                            double coefficient, const TargetScores& results);

// The norm of a float32 vector, as a float64 tensor on its device.
at::Tensor norm_of(const at::Tensor& x);

struct AdamWStep {
  float lr, beta1, beta2, epsilon, decay, norm_max;
  float correction1, correction2;  // 1 - beta^step
};
// One step on a part of the parameters, with gradients clipped to norm_max.  `copy` receives the
// weights in bfloat16 and may be undefined.  Nothing changes if `norm` is not finite.
void adamw(const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& first,
           const at::Tensor& second, const at::Tensor& copy, const at::Tensor& norm,
           const AdamWStep& step);

// The choice of each row's next token, by the rules of choose_token (sampling.h).  uniforms_CB and
// the results ([C, B, 2], token and log-probability) have one row for each step, indexed by `step`.
struct ChoiceOptions {
  double temperature = 1;
  double top_p = 1;
  at::Tensor uniforms_CB;
  at::Tensor step;  // int32
  at::Tensor tokens_B;
  at::Tensor results;
};
void choose(const at::Tensor& logits_BV, const ChoiceOptions& choosing);
// Increments the step and the positions; positions stay at the largest one.
void advance(const at::Tensor& positions_B, int64_t position_max, const at::Tensor& step);

}  // namespace mc::model::gpu

#endif  // MC_MODEL_GPU_OPS_H_
