// SPDX-License-Identifier: Apache-2.0
//
// The policy: the weights that generate answers and are trained on them.  Generator and trainer
// share their tensors.  The generator has a copy only if it computes in another dtype or uses older
// weights (--stale).  The decisions are made in src/rl; this class computes with tensors.
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
  double temperature = 0.9;  // The temperature T of every log-probability: softmax(logits / T).
  int64_t pack_tokens = 4096;
  size_t workers = 1;  // The number of threads; each processes a part of the sequences.
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  // The dtype of a generator that has its own weights, which refresh_generator() updates.  If
  // absent, the generator uses the trainer's weights.
  std::optional<at::ScalarType> generate_dtype;
  train::OptimizerOptions optimizer;
  bool keeps_reference = true;  // True to keep a copy of the first weights, for the KL.
};

// The values at each trained token of one sequence, in order.
struct Scores {
  std::vector<double> log_probs;
  std::vector<double> entropy;
};

// Computes the scores of all sequences and returns them.  Adds the gradient of sum(g log_prob) to
// `gradients`, where `gradient_of` returns the g of a sequence from its scores.  If `gradients` is
// null, only the scores are computed.
using GradientOf = std::function<std::vector<double>(size_t sequence, const Scores& now)>;
std::vector<Scores> score_sequences(const model::ForwardContext& context,
                                    std::span<const train::Sample* const> sequences,
                                    double temperature, const GradientOf& gradient_of,
                                    model::Parameters* gradients);

// The weights that generate an answer.
enum class Writer {
  kGenerator,
  kTrainer,
};

class Policy {
 public:
  Policy(const model::Model& model, const PolicyOptions& options);
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  // Generates answers to all requests.  Each worker has a fixed part of the requests, so the same
  // requests get bit-identical answers.  `done` is called from several threads.
  void generate(std::span<const model::Request> requests, const model::GenerateOptions& options,
                const std::function<void(size_t request, const model::Answer& answer)>& done,
                Writer writer = Writer::kGenerator) const;
  // Copies the trainer's weights to the generator, if it has its own.
  void refresh_generator();

  std::vector<Scores> score(std::span<const train::Sample> sequences) const;
  std::vector<Scores> score_by_reference(std::span<const train::Sample> sequences) const;

  // Performs one optimizer step and returns the gradient's norm before clipping.  If the norm is
  // not finite, nothing changes.  `gradient_of` is called from several threads.
  double update(std::span<const train::Sample> sequences, const GradientOf& gradient_of, double lr);

  // The tensors of a checkpoint, including the generator's own weights.  After loading values into
  // them, call restored(steps).
  train::RunTensors tensors();
  void restored(int64_t optimizer_steps);
  int64_t optimizer_steps() const { return optimizer_.steps(); }
  at::Tensor master() const { return master_; }

 private:
  std::vector<Scores> run(const model::Parameters& weights,
                          std::span<const train::Sample> sequences, const GradientOf& gradient_of,
                          std::vector<model::Parameters>* gradients) const;

  const PolicyOptions options_;
  // The parameters in float32; the decoder's own tensor if it computes in float32.
  at::Tensor master_;
  model::Parameters weights_;
  std::optional<model::Parameters> generator_;
  std::optional<model::Parameters> reference_;
  std::vector<model::Parameters> gradients_;  // One set of gradients for each worker.
  model::ops::RopeTable rope_;
  train::Optimizer optimizer_;
};

}  // namespace mc::loop

#endif  // MC_LOOP_POLICY_H_
