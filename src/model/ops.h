// SPDX-License-Identifier: Apache-2.0
//
// The operators of a decoder, with their forward and backward passes.
//
// Each operator has two forms: our own loops for float32 and float64 on the CPU, and PyTorch's
// operators for every device and dtype, which compute at least in float32.  The tests compare both
// with PyTorch's autograd of the formula.  Some backward functions add to their arguments `d…`;
// their comments say so.
//
// The letters in names: N rows, h width, T tokens (of all sequences, concatenated), H heads, K key
// and value heads, D width of a head, F width of the feed-forward part, V vocabulary.  A batch has
// no padding: `starts` contains the index of each sequence's first token, and T.  Errors are
// PyTorch's exceptions.
#ifndef MC_MODEL_OPS_H_
#define MC_MODEL_OPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace mc::model::ops {

// kNative selects our loops on the CPU, and our kernels for bfloat16 on a GPU, where they exist.
enum class Form { kNative, kGeneric };

// Copies values from the host to the device without waiting for the copy.
at::Tensor on_device(std::span<const int64_t> values, at::Device device);

// The norm y = x / sqrt(mean(x^2) + epsilon) * w of each row.  (Zhang and Sennrich, 2019.)
struct Norm {
  at::Tensor y_Nh;
  at::Tensor scale_N;  // 1 / sqrt(mean(x^2) + epsilon)
};
Norm rms_norm(const at::Tensor& x_Nh, const at::Tensor& w_h, double epsilon,
              Form form = Form::kNative);
// The norm of x + branch, and that sum.  `branch` may be overwritten; if it is undefined, the sum
// is x.
struct AddedNorm {
  at::Tensor sum_Nh;
  Norm norm;
};
AddedNorm add_rms_norm(const at::Tensor& x_Nh, at::Tensor branch_Nh, const at::Tensor& w_h,
                       double epsilon, Form form = Form::kNative);
// Adds the gradients to dx and dw.
void rms_norm_backward(const at::Tensor& dy_Nh, const at::Tensor& x_Nh, const at::Tensor& w_h,
                       const at::Tensor& scale_N, at::Tensor& dx_Nh, at::Tensor& dw_h,
                       Form form = Form::kNative);

// The product y = silu(gate) * up, where gate and up are the halves of each row.  (Shazeer, 2020.)
at::Tensor swiglu(const at::Tensor& gate_up_N2F, Form form = Form::kNative);
at::Tensor swiglu_backward(const at::Tensor& dy_NF, const at::Tensor& gate_up_N2F,
                           Form form = Form::kNative);

// The scaling of rotary positions in Llama 3.1.  Waves longer than positions / low_factor rotate
// `factor` times slower, waves shorter than positions / high_factor are not scaled, and waves
// between them are interpolated.
struct RopeScaling {
  double factor = 1;
  double low_factor = 1;
  double high_factor = 4;
  double positions = 8192;  // The context length of the original training.
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

// Rotates the pair (x_j, x_{j+D/2}) of each head by the angle of its position, in place.  The
// inverse rotation is the gradient of the forward rotation.  (Su et al., RoFormer, 2021.)
enum class Direction { kForward, kInverse };
void rope_(const at::Tensor& x_THD, const at::Tensor& positions_T, const RopeTable& table,
           Direction turn, Form form = Form::kNative);

// The boundaries of the sequences of a batch, on the host and on the device of the batch.
struct Extents {
  std::vector<int64_t> starts;  // The index of each sequence's first token, and T.
  at::Tensor starts_int32;
  int64_t longest = 0;
  bool are_equal = false;  // All sequences have the same length.
};
Extents make_extents(std::vector<int64_t> starts, at::Device device);

// Causal attention within each sequence: softmax(q k^T / sqrt(D)) v; a key head serves H/K query
// heads. The backward pass needs `lse` in addition to the output.
struct Attention {
  at::Tensor out_THD;
  at::Tensor lse_HT;  // The shape depends on the kernel that computed it.
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
// Returns the gradients as new tensors, computed by PyTorch's flash attention or cuDNN's. REQUIRES:
// has_flash(inputs.q_THD, Form::kNative).
AttentionInputs flash_attention_backward(const at::Tensor& dout_THD, const AttentionInputs& inputs,
                                         const Attention& saved, const Extents& extents);
bool has_flash(const at::Tensor& q_THD, Form form);

// The number of tokens that each of the first B slots of a cache sees, on the host and on the
// device of the cache.  One object serves all layers of a step.
struct CacheRows {
  // `like` has the dtype and the device of the cache.
  CacheRows(std::span<const int64_t> lengths, const at::Tensor& like, Form form = Form::kNative);

  std::span<const int64_t> lengths;
  at::Tensor slots_B;  // 0 to B - 1.
  at::Tensor lengths_B;
  at::Tensor bias_B11L;  // 0 for a visible token, else minus infinity; generic form only.
};
// Attention of one new query for each of the first B slots to the tokens that it sees.  The cache
// is read in place, in its own dtype. REQUIRES: all numbers in the cache are finite, also beyond
// the end of a sequence.
at::Tensor attention_decode(const at::Tensor& q_BHD, const at::Tensor& k_cache_SKPD,
                            const at::Tensor& v_cache_SKPD, const CacheRows& rows,
                            Form form = Form::kNative);

// The number of rows whose logits are in memory at once: on the CPU few, so that they fit its
// caches; on a device, up to 1 GiB of float32.  With fewer rows, the product with the head's matrix
// would be limited by memory bandwidth.
int64_t head_chunk_rows(int64_t vocab, bool is_cpu);

// The sum over the rows of -log softmax(h W^T)[target], a float64 tensor on the device of h.  dh is
// the gradient of weight times the sum; the gradient of W is added to dW.  The rows are processed
// in chunks, so the logits of all rows are never in memory at once.
struct TokenLoss {
  at::Tensor sum;
  at::Tensor dh_Nh;
};
TokenLoss token_loss(const at::Tensor& h_Nh, const at::Tensor& w_Vh, const at::Tensor& targets_N,
                     double weight, at::Tensor& dw_Vh);

// The log-probability of each row's target under softmax(h W^T / temperature), and the entropy of
// the whole distribution, in nat; float64 on the CPU.  The rows are processed in chunks, as in
// token_loss.
struct TokenLogProbs {
  at::Tensor log_prob_N;
  at::Tensor entropy_N;
};
TokenLogProbs token_log_probs(const at::Tensor& h_Nh, const at::Tensor& w_Vh,
                              const at::Tensor& targets_N, double temperature);
// Returns the gradient of sum(g * log_prob) with respect to h, and adds that of W to dW.
at::Tensor token_log_probs_backward(const at::Tensor& g_N, const at::Tensor& h_Nh,
                                    const at::Tensor& w_Vh, const at::Tensor& targets_N,
                                    double temperature, at::Tensor& dw_Vh);

// The product y = x w^T (+ b), and its gradients: dx = dy w, dw += dy^T x.  Float32 on the CPU uses
// oneDNN, which supports the widest registers of each vendor's processors.
at::Tensor linear(const at::Tensor& x, const at::Tensor& w);
at::Tensor linear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias);
at::Tensor linear_backward(const at::Tensor& dy, const at::Tensor& w);
void add_weight_gradient(at::Tensor dw, const at::Tensor& dy, const at::Tensor& x);
void add_bias_gradient(at::Tensor db, const at::Tensor& dy);

}  // namespace mc::model::ops

#endif  // MC_MODEL_OPS_H_
