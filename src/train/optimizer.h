// SPDX-License-Identifier: Apache-2.0
//
// AdamW (Loshchilov and Hutter, 2019) on the flat parameters of a decoder, with a learning rate
// schedule and gradient clipping by norm.
#ifndef MC_TRAIN_OPTIMIZER_H_
#define MC_TRAIN_OPTIMIZER_H_

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace mc::train {

struct OptimizerOptions {
  double lr = 1e-3;      // The peak of the schedule.
  double lr_end = 0.1;   // The final learning rate, as a share of the peak.
  double warmup = 0.03;  // The length of the warm-up, as a share of the run.
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // The weight decay of matrices; norms have no weight decay.
  // The maximum norm of all gradients together; a longer gradient is scaled down to it.
  double norm_max = 1;
};

// Default settings of fine-tuning.  Randomly initialised models take a learning rate at which
// pretrained models would forget what they know; for pretrained models, the paper's values.
struct SftDefaults {
  double lr;
  double weight_decay;
  int64_t length_max;  // The longest conversation, in tokens.
};
inline constexpr SftDefaults kFromScratchDefaults = {1e-3, 0.1, 4096};
inline constexpr SftDefaults kPretrainedDefaults = {1e-5, 0.01, 40960};

// The learning rate at `progress`, a share of the run from 0 to 1: a linear warm-up, then half a
// cosine from lr down to lr * lr_end.
double learning_rate(const OptimizerOptions& options, double progress);

class Optimizer {
 public:
  // `master` contains the parameters in float32 (float64 in tests); the first `matrices` of them
  // have weight decay.  A step changes `master` in place, and also `weights`, the same parameters
  // in the decoder's dtype.  `weights` may be the master itself, or undefined, if there is no
  // second copy.
  Optimizer(at::Tensor master, int64_t matrices, const OptimizerOptions& options,
            at::Tensor weights = {});

  // Performs one step with the learning rate `lr` and the clipped gradients (on the CPU, clipped in
  // place).  Returns the norm before clipping.  If the norm is not finite, nothing changes.
  double step(at::Tensor& gradients, double lr);

  // The state that a checkpoint contains in addition to the parameters.
  at::Tensor& first_moment() { return first_; }
  at::Tensor& second_moment() { return second_; }
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  void update(int64_t start, int64_t count, const at::Tensor& gradients, double lr, double decay);
  double step_by_kernels(const at::Tensor& gradients, double lr);

  const OptimizerOptions options_;
  const int64_t matrices_;
  at::Tensor master_;
  at::Tensor weights_;  // Undefined if the master is the only copy.
  at::Tensor first_;
  at::Tensor second_;
  int64_t steps_ = 0;
};

}  // namespace mc::train

#endif  // MC_TRAIN_OPTIMIZER_H_
