// SPDX-License-Identifier: Apache-2.0
//
// Supervised fine-tuning: a model folder and conversations in, a run folder out.
//
//   RUN/store.sqlite    the settings of the run
//   RUN/metrics.jsonl   one line for each step (metrics.h)
//   RUN/checkpoints/    the states from which an interrupted run resumes (checkpoint.h)
//   RUN/model           the result, a Hugging Face folder, once the run is complete
//
// Several ranks (ranks.h) share the conversations of each step and sum their gradients.  All ranks
// make the same step, so the result is that of a single process except for the order of sums.  Only
// the first rank writes; all ranks read the folder.  A run may resume with another number of ranks.
//
// A killed run resumes from its last checkpoint.  If its length is given as a number of steps, its
// metrics and its result are the same as those of an uninterrupted run, bit for bit on the CPU.
#ifndef MC_TRAIN_SFT_H_
#define MC_TRAIN_SFT_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>

#include "core/result.h"
#include "train/metrics.h"
#include "train/optimizer.h"
#include "train/ranks.h"

namespace mc::train {

// The default number of tokens in a forward pass: on a CPU, what fits its caches; on a GPU, what
// keeps it busy.
inline constexpr int64_t kPackTokens = 2048;
inline constexpr int64_t kPackTokensGpu = 16384;

struct SftOptions {
  std::filesystem::path model;
  std::filesystem::path data;  // The file for read_samples (samples.h).
  std::filesystem::path run;
  // The length of the run, in steps.  At most one of `steps` and `minutes` is set.
  std::optional<int64_t> steps;
  // The length of the run, in minutes.  If neither is set, one pass over the data.
  std::optional<double> minutes;
  int64_t batch_tokens = 8192;  // The minimum number of tokens in a step.
  // The maximum number of tokens in a forward pass; a longer conversation is a pass of its own.
  std::optional<int64_t> pack_tokens;
  // Longer conversations are left out.  The default of this member, of lr and of weight_decay
  // depends on the kind of model: SftDefaults in optimizer.h.
  std::optional<int64_t> length_max;
  std::optional<double> lr;
  std::optional<double> weight_decay;
  OptimizerOptions optimizer;  // Its lr and weight_decay are not read.
  uint64_t seed = 0;
  bool resume = false;
  // The steps between checkpoints; by default, one checkpoint a minute.
  std::optional<int64_t> checkpoint_steps;
  size_t workers = 1;  // Threads that each take a part of a step's conversations.
  at::Device device = at::kCPU;
  at::ScalarType dtype =
      at::kFloat;  // The type of the decoder; the parameters' masters are float32.
  RankSetup rank;  // The position of this process among the ranks.
  // Recomputes activations: only the inputs of blocks are kept, for packs that need more memory.
  bool recomputes = false;
};

struct Progress {
  StepMetrics metrics;
  double share = 0;  // The completed share of the run, from 0 to 1.
  std::optional<int64_t> steps;
};

struct SftResult {
  int64_t steps = 0;
  int64_t tokens = 0;
  int64_t conversations = 0;
  int64_t too_long = 0;
  double loss = 0;  // The loss of the last step.
  double elapsed_s = 0;
};

// kInvalidInput for errors that the user can correct; kIo if the disk is full.  PyTorch's
// exceptions are passed on.
Result<SftResult> run_sft(const SftOptions& options,
                          const std::function<void(const Progress&)>& on_step);

}  // namespace mc::train

#endif  // MC_TRAIN_SFT_H_
