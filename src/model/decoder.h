// SPDX-License-Identifier: Apache-2.0
//
// The decoder: its parameters, its forward and backward pass over whole sequences, and
// token-by-token decoding with a cache of keys and values.
//
// All parameters are slices of one flat tensor, and so are their gradients: an optimizer step, a
// norm and a checkpoint are each one operation.  Backward passes are written by hand, without
// autograd; the tests use autograd as the reference.
//
//   Parameters weights(config, flat), gradients(config, at::zeros_like(flat));
//   Tape tape;
//   at::Tensor h = forward(weights, rope, batch, &tape);   // [T, h], after the last norm
//   ... dh ...
//   backward(weights, rope, batch, tape, dh, gradients);
//
// The letters in names are explained in ops.h.  Errors are PyTorch's exceptions.
#ifndef MC_MODEL_DECODER_H_
#define MC_MODEL_DECODER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/config.h"
#include "model/ops.h"

namespace mc::model {

// A tensor of a Hugging Face file, and its position in the flat tensor.
struct Slice {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t count = 0;
};

// The order of the slices: first the matrices, then the norms and biases, which have no weight
// decay. The matrices of queries, keys and values are adjacent, and so are gate and up: each group
// is used as one matrix.
struct Layout {
  std::vector<Slice> slices;
  int64_t matrices = 0;  // The number of elements in all matrices.
  int64_t total = 0;     // The number of elements in all slices.
};
Layout layout_of(const Config& config);

struct Block {
  at::Tensor qkv;       // [(H + 2K) D, h]
  at::Tensor qkv_bias;  // [(H + 2K) D]; defined for Qwen2 only.
  at::Tensor o;         // [h, H D]
  at::Tensor gate_up;   // [2 F, h]
  at::Tensor down;      // [h, F]
  at::Tensor attention_norm;
  at::Tensor ffn_norm;
  at::Tensor q_norm;  // Defined for Qwen3 only.
  at::Tensor k_norm;
};

// The parameters as views into `flat`; the views keep it alive.
struct Parameters {
  Parameters(const Config& config, at::Tensor flat);
  Config config;
  at::Tensor flat;
  at::Tensor embedding;  // [V, h]
  std::vector<Block> blocks;
  at::Tensor last_norm;
  at::Tensor head;  // [V, h]; the embedding itself if their weights are shared.
};

// Concatenated sequences, without padding.
struct Batch {
  at::Tensor tokens_T;     // int64
  at::Tensor positions_T;  // int64, from 0 in each sequence
  ops::Extents extents;
};
// REQUIRES: no sequence is empty.
Batch make_batch(std::span<const std::vector<int32_t>> sequences, at::Device device);

// The values that the backward pass of one block needs; with Keep::kInputs, x alone.
struct BlockTape {
  at::Tensor x;  // The input of the block.
  ops::Norm attention_norm;
  at::Tensor qkv;  // The output of the matrix; rotated in place if the family has no q_norm.
  ops::Norm q_norm, k_norm;    // Qwen3 only; y is rotated, or undefined if a kernel made `heads`.
  ops::AttentionInputs heads;  // The inputs of attention.
  ops::Attention attention;
  at::Tensor x_mid;  // After attention.
  ops::Norm ffn_norm;
  at::Tensor gate_up;
  at::Tensor inner;  // swiglu(gate_up)
};
struct Tape {
  std::vector<BlockTape> blocks;
  at::Tensor x_last;
  ops::Norm last_norm;
};

// Keys and values of `slots` sequences of up to `length_max` tokens, for each block.
struct Cache {
  Cache(const Config& config, int64_t slots, int64_t length_max, at::TensorOptions options);
  // Copies the first `length` tokens from one slot to another.
  void copy(int64_t from, int64_t to, int64_t length);
  std::vector<at::Tensor> keys_SKPD;
  std::vector<at::Tensor> values_SKPD;
};

// Cosines and sines for the positions from 0, in float32 on the device.
ops::RopeTable rope_of(const Config& config, int64_t positions, at::Device device);

// The values that the forward pass keeps for the backward pass.  kInputs keeps only the input of
// each block and recomputes the rest: a third more work, a tenth of the memory.
enum class Keep { kAll, kInputs };

struct ForwardContext {
  const Parameters& weights;
  const ops::RopeTable& rope;  // In the weights' dtype on the CPU, in float32 on other devices.
  ops::Form form = ops::Form::kNative;
  Keep keep = Keep::kAll;
};

// The forward pass: returns the hidden states after the last norm.  `tape` may be null.
// `on_heads`, if not empty, receives the inputs of attention in each block.
using OnHeads = std::function<void(size_t block, const ops::AttentionInputs& heads)>;
at::Tensor forward(const ForwardContext& context, const Batch& batch, Tape* tape,
                   const OnHeads& on_heads = {});

// A forward pass without a tape that fills the cache: sequence i is written to slot slots[i].
at::Tensor prefill(const ForwardContext& context, const Batch& batch, Cache& cache,
                   std::span<const int64_t> slots);

// Adds the gradients of sum(dh * forward(...)) to `gradients`.
void backward(const ForwardContext& context, const Batch& batch, const Tape& tape,
              const at::Tensor& dh_Th, Parameters& gradients);

// Decodes one more token for each of the first B slots, at position lengths[i] of its sequence.
// Returns hidden states [B, h], and writes keys and values to the cache at that position.
at::Tensor decode_step(const ForwardContext& context, const at::Tensor& tokens_B, Cache& cache,
                       std::span<const int64_t> lengths);

}  // namespace mc::model

#endif  // MC_MODEL_DECODER_H_
