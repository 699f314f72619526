// SPDX-License-Identifier: Apache-2.0
//
// AdamW (Loshchilov and Hutter, 2019) on the flat parameters of a decoder, with the learning rate's
// course and the limit on the gradient's norm.
#ifndef MC_TRAIN_OPTIMIZER_H_
#define MC_TRAIN_OPTIMIZER_H_

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace mc::train {

struct OptimizerOptions {
  double lr = 1e-3;      // At its peak.
  double lr_end = 0.1;   // The share of the peak, at the end of the run.
  double warmup = 0.03;  // The share of the run.
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // The weight decay of matrices; norms have none.
  double norm_max = 1;  // The norm of all gradients together; longer ones are shortened to it.
};

// The settings of fine-tuning where nothing else is asked for.  Random weights take a rate at which
// pretrained ones would forget what they know; those have the paper's values.
struct SftDefaults {
  double lr;
  double weight_decay;
  int64_t length_max;  // The longest conversation, in tokens.
};
inline constexpr SftDefaults kFromScratchDefaults = {1e-3, 0.1, 4096};
inline constexpr SftDefaults kPretrainedDefaults = {1e-5, 0.01, 40960};

// The learning rate at `progress`, from 0 to 1 of the run: up in a straight line, then down along
// half a cosine from lr to lr * lr_end.
double learning_rate(const OptimizerOptions& options, double progress);

class Optimizer {
 public:
  // `master` are the parameters in float32 (or float64, in tests), the first `matrices` of them
  // with weight decay.  They are changed in place, and so are `weights`, the same in the decoder's
  // dtype (the master itself, or undefined, where there are no others).
  Optimizer(at::Tensor master, int64_t matrices, const OptimizerOptions& options,
            at::Tensor weights = {});

  // One step with the learning rate `lr` and gradients that are shortened (on the CPU, in place);
  // returns their norm before that.  Where the norm is no finite number nothing changes.
  double step(at::Tensor& gradients, double lr);

  // The state that a checkpoint holds beside the parameters.
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
  at::Tensor weights_;  // Undefined where the master is all.
  at::Tensor first_;
  at::Tensor second_;
  int64_t steps_ = 0;
};

}  // namespace mc::train

#endif  // MC_TRAIN_OPTIMIZER_H_
