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
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace mc::model::ops {

// kNative takes our loops on the CPU, and our kernels for bfloat16 on a GPU, where there are some.
enum class Form { kNative, kGeneric };

// Numbers of the host where the device can use them; the host does not wait for that.
at::Tensor on_device(std::span<const int64_t> values, at::Device device);

// The norm y = x / sqrt(mean(x^2) + epsilon) * w of each row.  (Zhang and Sennrich, 2019.)
struct Norm {
  at::Tensor y_Nh;
  at::Tensor scale_N;  // 1 / sqrt(mean(x^2) + epsilon)
};
Norm rms_norm(const at::Tensor& x_Nh, const at::Tensor& w_h, double epsilon,
              Form form = Form::kNative);
// The same of x + branch, which it also returns.  `branch` is used up; where it is undefined the
// sum is x.
struct AddedNorm {
  at::Tensor sum_Nh;
  Norm norm;
};
AddedNorm add_rms_norm(const at::Tensor& x_Nh, at::Tensor branch_Nh, const at::Tensor& w_h,
                       double epsilon, Form form = Form::kNative);
// The gradients are added to dx and dw.
void rms_norm_backward(const at::Tensor& dy_Nh, const at::Tensor& x_Nh, const at::Tensor& w_h,
                       const at::Tensor& scale_N, at::Tensor& dx_Nh, at::Tensor& dw_h,
                       Form form = Form::kNative);

// The product y = silu(gate) * up; gate and up are the halves of each row.  (Shazeer, 2020.)
at::Tensor swiglu(const at::Tensor& gate_up_N2F, Form form = Form::kNative);
at::Tensor swiglu_backward(const at::Tensor& dy_NF, const at::Tensor& gate_up_N2F,
                           Form form = Form::kNative);

// How Llama 3.1 stretches the positions that it was first trained on.  Waves longer than
// positions / low_factor turn `factor` times slower, waves shorter than positions / high_factor
// turn as before, and waves between them are blended.
struct RopeScaling {
  double factor = 1;
  double low_factor = 1;
  double high_factor = 4;
  double positions = 8192;  // The length of the first training.
  bool operator==(const RopeScaling&) const = default;
};

// Cosines and sines of position times frequency: frequency j is theta^(-2j/D), in float32, before
// scaling.
struct RopeTable {
  at::Tensor cos_PD2;
  at::Tensor sin_PD2;
};
RopeTable rope_table(int64_t positions, int64_t head_dim, double theta,
                     const std::optional<RopeScaling>& scaling = std::nullopt);

// Turns the pair (x_j, x_{j+D/2}) of each head by the angle of its position, in place.  Backwards
// is the gradient of forwards.  (Su et al., RoFormer, 2021.)
enum class Turn { kForwards, kInverse };
void rope_(const at::Tensor& x_THD, const at::Tensor& positions_T, const RopeTable& table,
           Turn turn, Form form = Form::kNative);

// The begins of the sequences of a batch, on the host and where the batch is.
struct Extents {
  std::vector<int64_t> starts;  // First token of each sequence, and T.
  at::Tensor starts_int32;
  int64_t longest = 0;
  bool are_equal = false;  // All sequences have the same length.
};
Extents make_extents(std::vector<int64_t> starts, at::Device device);

// Causal attention within each sequence: softmax(q k^T / sqrt(D)) v; a key head serves H/K query
// heads.  `lse` is what the backward needs beside the output.
struct Attention {
  at::Tensor out_THD;
  at::Tensor lse_HT;  // The shape is that of the kernel that made it.
};
Attention attention(const at::Tensor& q_THD, const at::Tensor& k_TKD, const at::Tensor& v_TKD,
                    const Extents& extents, Form form = Form::kNative);
struct AttentionInputs {
  at::Tensor q_THD;
  at::Tensor k_TKD;
  at::Tensor v_TKD;
};
// Overwrites `gradients`, which may be views into one buffer.
void attention_backward(const at::Tensor& dout_THD, const AttentionInputs& inputs,
                        const Attention& saved, const Extents& extents,
                        const AttentionInputs& gradients, Form form = Form::kNative);
// The gradients in tensors of their own, by PyTorch's flash attention or cuDNN's.
// REQUIRES: has_flash(inputs.q_THD, Form::kNative).
AttentionInputs flash_attention_backward(const at::Tensor& dout_THD, const AttentionInputs& inputs,
                                         const Attention& saved, const Extents& extents);
bool has_flash(const at::Tensor& q_THD, Form form);

// How many tokens each of the first B slots of a cache sees, on the host and where the cache is.
// One object serves all layers of a step.
struct CacheRows {
  // `like` has the dtype and the device of the cache.
  CacheRows(std::span<const int64_t> lengths, const at::Tensor& like, Form form = Form::kNative);

  std::span<const int64_t> lengths;
  at::Tensor slots_B;  // 0 to B - 1.
  at::Tensor lengths_B;
  at::Tensor bias_B11L;  // 0 for a visible token, minus infinity elsewhere; generic form only.
};
// One new query for each of the first B slots against the tokens that it sees.  The cache is read
// where it is, in its own dtype.
// REQUIRES: the cache holds finite numbers also behind a sequence.
at::Tensor attention_decode(const at::Tensor& q_BHD, const at::Tensor& k_cache_SKPD,
                            const at::Tensor& v_cache_SKPD, const CacheRows& rows,
                            Form form = Form::kNative);

// Rows whose logits are in memory at once: few on the CPU, for its caches; up to 1 GiB of float32
// on a device.  Fewer rows would make the product with the
// head's matrix wait for memory.
int64_t head_chunk_rows(int64_t vocab, bool is_cpu);

// The sum over the rows of -log softmax(h W^T)[target], a float64 number where h is.  dh is that of
// weight times the sum; dW += likewise.  Works in chunks of rows, so that the logits of all are
// never in memory.
struct TokenLoss {
  at::Tensor sum;
  at::Tensor dh_Nh;
};
TokenLoss token_loss(const at::Tensor& h_Nh, const at::Tensor& w_Vh, const at::Tensor& targets_N,
                     double weight, at::Tensor& dw_Vh);

// The log-probability of each row's target under softmax(h W^T / temperature), and the entropy of
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

// The product y = x w^T (+ b), and its gradients: dx = dy w, dw += dy^T x.  Float32 on the CPU goes
// through oneDNN, which uses the widest registers of every maker's processor.
at::Tensor linear(const at::Tensor& x, const at::Tensor& w);
at::Tensor linear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias);
at::Tensor linear_backward(const at::Tensor& dy, const at::Tensor& w);
void add_weight_gradient(at::Tensor dw, const at::Tensor& dy, const at::Tensor& x);
void add_bias_gradient(at::Tensor db, const at::Tensor& dy);

}  // namespace mc::model::ops

#endif  // MC_MODEL_OPS_H_
