// SPDX-License-Identifier: Apache-2.0
//
// Decoding on a GPU with a static cache.  The steps choose their tokens on the device; they are
// recorded as a CUDA graph once for each number of slots, and replayed.
//
//   GpuDecoder decoder(context, slots, length_max, sampling);
//   decoder.prefill(prompts, targets);                      // keys and values into slots
//   decoder.choose_first(hidden_Bh, uniforms);              // the first token of each
//   decoder.run(next tokens, lengths, uniforms_CB);         // C steps for B slots
//
// All work runs on a separate stream between construction and destruction; both wait for the GPU.
// Not thread-safe.  Errors are exceptions.
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
  // True if the kernels support this model.
  static bool fits(const ForwardContext& context);

  GpuDecoder(const ForwardContext& context, int64_t slots, int64_t length_max,
             const Sampling& sampling);
  ~GpuDecoder();
  GpuDecoder(const GpuDecoder&) = delete;
  GpuDecoder& operator=(const GpuDecoder&) = delete;

  // A slot for a prompt, which is given by its index.
  struct Target {
    int64_t prompt;
    int64_t slot;
  };
  // Computes prompts and writes their keys and values into slots.  Returns the hidden state after
  // each prompt.
  at::Tensor prefill(std::span<const std::vector<int32_t>> prompts,
                     std::span<const Target> targets);
  // Copies the first `length` tokens of slots to other slots; no slot is both source and target.
  void copy(std::span<const std::pair<int64_t, int64_t>> from_to, int64_t length);

  std::vector<Choice> choose_first(const at::Tensor& hidden_Bh, std::span<const double> uniforms);

  // The state of a slot before the steps.
  struct Start {
    int64_t token;
    int64_t length;  // The number of tokens in the cache.
  };
  // Runs `steps` steps for the first B = starts.size() slots and returns the chosen tokens with
  // their log-probabilities.  The result and `uniforms`, the random numbers of the choices, are
  // both [steps, B]. REQUIRES: B is the number of slots, or that number halved (rounded up) some
  // times.
  std::vector<Choice> run(std::span<const Start> starts, std::span<const double> uniforms,
                          int64_t steps);

 private:
  // The tensors and the recorded graph of a step for B slots.
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

  const ForwardContext context_;
  const Sampling sampling_;
  const int64_t length_max_;
  c10::StreamGuard stream_;
  at::Tensor cache_;  // [blocks, keys and values, slots, K, length, D]
  std::map<std::pair<int64_t, int64_t>, Lane> lanes_;  // The keys are slots and steps.
};

}  // namespace mc::model

#endif  // MC_MODEL_GPU_DECODER_H_
