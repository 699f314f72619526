// SPDX-License-Identifier: Apache-2.0
//
// The operators of a decoder, forward and backward.
//
// Each has two forms: loops of our own for float32 and float64 on the CPU, and PyTorch's operators
// for every device and dtype, which compute in float32 at least.  The tests hold both against
// PyTorch's autograd of the formula.  Backward functions add to what is named `d…` where they say
// so.
//
// Letters in names: N rows, h width, T tokens (of all sequences, one after another), H heads, K key
// and value heads, D width of a head, F width of the feed-forward part, V vocabulary.  A batch has
// no padding: `starts` are the first tokens of its sequences, and T.  Errors are PyTorch's
// exceptions.
#ifndef MC_MODEL_OPS_H_
#define MC_MODEL_OPS_H_

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace mc::model::ops {

// kFast takes our loops where there are some.
enum class Form { kFast, kGeneric };

// y = x / sqrt(mean(x^2) + epsilon) * w for each row.  (Zhang and Sennrich, 2019.)
struct Norm {
  at::Tensor y_Nh;
  at::Tensor scale_N;  // 1 / sqrt(mean(x^2) + epsilon)
};
Norm rms_norm(const at::Tensor& x_Nh, const at::Tensor& w_h, double epsilon,
              Form form = Form::kFast);
// dx += and dw += the gradients.
void rms_norm_backward(const at::Tensor& dy_Nh, const at::Tensor& x_Nh, const at::Tensor& w_h,
                       const at::Tensor& scale_N, at::Tensor& dx_Nh, at::Tensor& dw_h,
                       Form form = Form::kFast);

// y = silu(gate) * up; gate and up are the halves of each row.  (Shazeer, 2020.)
at::Tensor swiglu(const at::Tensor& gate_up_N2F, Form form = Form::kFast);
at::Tensor swiglu_backward(const at::Tensor& dy_NF, const at::Tensor& gate_up_N2F,
                           Form form = Form::kFast);

// cos and sin of position times frequency: frequency j is theta^(-2j/D), in float32.
struct RopeTable {
  at::Tensor cos_PD2;
  at::Tensor sin_PD2;
};
RopeTable rope_table(int64_t positions, int64_t head_dim, double theta);

// Turns the pair (x_j, x_{j+D/2}) of each head by the angle of its position, in place.  Backwards
// is the gradient of forwards.  (Su et al., RoFormer, 2021.)
enum class Turn { kForwards, kBackwards };
void rope_(const at::Tensor& x_THD, const at::Tensor& positions_T, const RopeTable& table,
           Turn turn, Form form = Form::kFast);

// Causal attention within each sequence: softmax(q k^T / sqrt(D)) v; a key head serves H/K query
// heads.  `lse` is what the backward needs beside the output.
struct Attention {
  at::Tensor out_THD;
  at::Tensor lse_HT;
};
Attention attention(const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD,
                    std::span<const int64_t> starts, Form form = Form::kFast);
struct AttentionInputs {
  at::Tensor q_THD;
  at::Tensor k_TKD;
  at::Tensor v_TKD;
};
// Overwrites `gradients`, which may be views into one buffer.
void attention_backward(const at::Tensor& dout_THD, const AttentionInputs& inputs,
                        const Attention& saved, std::span<const int64_t> starts,
                        const AttentionInputs& gradients, Form form = Form::kFast);

// Which slot of a cache each row has, and how many tokens it sees there; on the host, and once for
// all layers where the cache is.
struct CacheRows {
  CacheRows(std::span<const int64_t> slots, std::span<const int64_t> lengths, at::Device device);

  std::span<const int64_t> slots;
  std::span<const int64_t> lengths;
  at::Tensor slots_B;
  at::Tensor lengths_B;
};
// One new query for each row against the tokens that it sees.
at::Tensor attention_decode(const at::Tensor& q_BHD, const at::Tensor& k_cache_SKPD,
                            const at::Tensor& v_cache_SKPD, const CacheRows& rows,
                            Form form = Form::kFast);

// The sum over the rows of -log softmax(h W^T)[target], in float64.  dh is that of weight times the
// sum; dW += likewise.  Works in chunks of rows, so that the logits of all are never in memory.
struct TokenLoss {
  double sum;
  at::Tensor dh_Nh;
};
TokenLoss token_loss(const at::Tensor& h_Nh, const at::Tensor& w_Vh, const at::Tensor& targets_N,
                     double weight, at::Tensor& dw_Vh);

// Of each row's target under softmax(h W^T / temperature): its log-probability, and the entropy of
// the whole distribution, in nat; float64 on the CPU.  Chunked like token_loss.
struct TokenLogProbs {
  at::Tensor log_prob_N;
  at::Tensor entropy_N;
};
TokenLogProbs token_log_probs(const at::Tensor& h_Nh, const at::Tensor& w_Vh,
                              const at::Tensor& targets_N, double temperature);
// The gradient of sum(g * log_prob) with respect to h; that of W is added to dW.
at::Tensor token_log_probs_backward(const at::Tensor& g_N, const at::Tensor& h_Nh,
                                    const at::Tensor& w_Vh, const at::Tensor& targets_N,
                                    double temperature, at::Tensor& dw_Vh);

// y = x w^T, and its gradients: dx = dy w, dw += dy^T x.  Float32 on the CPU goes through oneDNN,
// which uses the widest registers of every maker's processor.
at::Tensor linear(const at::Tensor& x, const at::Tensor& w);
at::Tensor linear_backward(const at::Tensor& dy, const at::Tensor& w);
void add_weight_gradient(at::Tensor dw, const at::Tensor& dy, const at::Tensor& x);

}  // namespace mc::model::ops

#endif  // MC_MODEL_OPS_H_
