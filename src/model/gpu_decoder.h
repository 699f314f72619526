// SPDX-License-Identifier: Apache-2.0
//
// Decoding on a GPU: a static cache, and steps that choose their tokens themselves, recorded once
// for each number of slots and replayed.
//
//   GpuDecoder decoder(passage, slots, length_max, sampling);
//   decoder.prefill(prompts, targets);                      // keys and values into slots
//   decoder.choose_first(hidden_Bh, uniforms);              // the first token of each
//   decoder.run(next tokens, lengths, uniforms_CB);         // C steps for B slots
//
// Everything runs on a stream of its own between construction and destruction, which both wait for
// the GPU.  Not for several threads.  Errors are exceptions.
#ifndef MC_MODEL_GPU_DECODER_H_
#define MC_MODEL_GPU_DECODER_H_

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>

#include "model/decoder.h"
#include "model/gpu_ops.h"
#include "model/sampling.h"

namespace mc::model {

class GpuDecoder {
 public:
  // There are kernels for a model like this.
  static bool fits(const ForwardContext& passage);

  GpuDecoder(const ForwardContext& passage, int64_t slots, int64_t length_max,
             const Sampling& sampling);
  ~GpuDecoder();
  GpuDecoder(const GpuDecoder&) = delete;
  GpuDecoder& operator=(const GpuDecoder&) = delete;

  // A prompt, by its number, for a slot.
  struct Target {
    int64_t prompt;
    int64_t slot;
  };
  // Passes prompts and writes their keys and values into slots.  The hidden state after each.
  at::Tensor prefill(std::span<const std::vector<int32_t>> prompts,
                     std::span<const Target> targets);
  // The first `length` tokens of slots, into others that are not among them.
  void copy(std::span<const std::pair<int64_t, int64_t>> from_to, int64_t length);

  std::vector<Choice> choose_first(const at::Tensor& hidden_Bh, std::span<const double> uniforms);

  // The state with which each of the first B slots begins.
  struct Start {
    int64_t token;
    int64_t length;  // Tokens in the cache.
  };
  // The tokens chosen in `steps` steps for B = starts.size() slots, with log-probabilities.  The
  // result and `uniforms`, the random numbers of the choices, are both [steps, B].
  // REQUIRES: starts.size() is slots, or slots halved some times and rounded up.
  std::vector<Choice> run(std::span<const Start> starts, std::span<const double> uniforms,
                          int64_t steps);

 private:
  // The tensors of a step for B slots, and its record.
  struct Lane {
    at::Tensor tokens, positions, step, uniforms, results;
    at::Tensor x, y, qkv, out, branch, gate_up, inner, logits, parts;
    gpu::Graph graph;
    bool is_recorded = false;
  };

  Lane make_lane(int64_t rows, int64_t steps) const;
  void load(const Lane& lane, std::span<const Start> starts,
            std::span<const double> uniforms) const;
  void step(const Lane& lane) const;
  void block(const Lane& lane, const Block& block, size_t index) const;
  gpu::Sizes sizes() const;
  at::Tensor cache(size_t block, int64_t which) const;

  const ForwardContext passage_;
  const Sampling sampling_;
  const int64_t length_max_;
  c10::StreamGuard stream_;
  at::Tensor cache_;  // [blocks, keys and values, slots, K, length, D]
  std::map<std::pair<int64_t, int64_t>, Lane> lanes_;  // The keys are slots and steps.
};

}  // namespace mc::model

#endif  // MC_MODEL_GPU_DECODER_H_
