// SPDX-License-Identifier: Apache-2.0
//
// The policy: the weights that write answers and are trained on them.  Generator and trainer have
// the same tensors, unless the generator is to compute in another dtype or to be stale (--stale):
// then it has a copy.  Tensors stand behind this header; src/rl decides, this computes.
//
//   Policy policy(model, options);
//   std::vector<Scores> old = policy.score(sequences);
//   policy.update(sequences, [&](size_t i, const Scores& now) { return gradient of i; }, lr);
#ifndef MC_LOOP_POLICY_H_
#define MC_LOOP_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/decoder.h"
#include "model/generate.h"
#include "model/model_folder.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/samples.h"

namespace mc::loop {

struct PolicyOptions {
  double temperature =
      0.9;  // The temperature of every log-probability: softmax(logits / temperature).
  int64_t pack_tokens = 4096;
  size_t workers = 1;  // Threads that each take a part of the sequences.
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  // The dtype of a generator with weights of its own, as refresh_generator() left them.  Without
  // one the generator has the trainer's weights.
  std::optional<at::ScalarType> generate_dtype;
  train::OptimizerOptions optimizer;
  bool keeps_reference = true;  // A copy of the first weights, for the KL.
};

// Values of the trained tokens of one sequence, in order.
struct Scores {
  std::vector<double> log_probs;
  std::vector<double> entropy;
};

// Adds to `gradients` that of sum(g log_prob), g of each sequence by `gradient_of`, which is also
// told its scores; returns them.  With `gradients` null: the scores alone.
using GradientOf = std::function<std::vector<double>(size_t sequence, const Scores& now)>;
std::vector<Scores> score_sequences(const model::ForwardContext& passage,
                                    std::span<const train::Sample* const> sequences,
                                    double temperature, const GradientOf& gradient_of,
                                    model::Parameters* gradients);

// Which weights write an answer.
enum class Writer {
  kGenerator,
  kTrainer,
};

class Policy {
 public:
  Policy(const model::Model& model, const PolicyOptions& options);
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  // Answers to all requests.  Each worker has a fixed part of them, so the same requests get the
  // same answers to the last bit.  `done` is called from several threads.
  void generate(std::span<const model::Request> requests, const model::GenerateOptions& options,
                const std::function<void(size_t request, const model::Answer& answer)>& done,
                Writer writer = Writer::kGenerator) const;
  // The generator's own weights, if it has some, become those of the trainer.
  void refresh_generator();

  std::vector<Scores> score(std::span<const train::Sample> sequences) const;
  std::vector<Scores> score_by_reference(std::span<const train::Sample> sequences) const;

  // One step of the optimiser; returns the gradient's norm before it was limited.  Where that is no
  // finite number nothing changed.  `gradient_of` is called from several threads.
  double update(std::span<const train::Sample> sequences, const GradientOf& gradient_of, double lr);

  // The tensors of a checkpoint, a generator's own weights too; after loading into it:
  // restored(steps).
  train::RunTensors tensors();
  void restored(int64_t optimizer_steps);
  int64_t optimizer_steps() const { return optimizer_.steps(); }
  at::Tensor master() const { return master_; }

 private:
  std::vector<Scores> run(const model::Parameters& weights,
                          std::span<const train::Sample> sequences, const GradientOf& gradient_of,
                          std::vector<model::Parameters>* gradients) const;

  const PolicyOptions options_;
  at::Tensor master_;  // Float32; the decoder's own where it computes in that.
  model::Parameters weights_;
  std::optional<model::Parameters> generator_;
  std::optional<model::Parameters> reference_;
  std::vector<model::Parameters> gradients_;  // One for each worker.
  model::ops::RopeTable rope_;
  train::Optimizer optimizer_;
};

}  // namespace mc::loop

#endif  // MC_LOOP_POLICY_H_
