// SPDX-License-Identifier: Apache-2.0
//
// Supervised fine-tuning: a model folder and conversations in, a run folder out.
//
//   RUN/store.sqlite    what the run was asked for
//   RUN/metrics.jsonl   one line a step (metrics.h)
//   RUN/checkpoints/    to go on from after a stop of any kind (checkpoint.h)
//   RUN/model           the result, a Hugging Face folder, once the run is complete
//
// Several ranks (ranks.h) share out the conversations of each step and add up their gradients; all
// take the same step, so the result is that of one process but for the order of sums.  The first
// rank alone writes, and all read the folder.  A run may go on with another number of ranks.
//
// A run that was killed goes on from its last checkpoint.  Where its length is a number of steps,
// its metrics and its result are then the same as those of a run that was not, bit for bit on the
// CPU.
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

// Tokens of a pass of the decoder where nothing else is asked for: what fits the caches of a CPU,
// and what keeps a GPU busy.
inline constexpr int64_t kPackTokens = 2048;
inline constexpr int64_t kPackTokensGpu = 16384;

struct SftOptions {
  std::filesystem::path model;
  std::filesystem::path data;  // The file of samples.h
  std::filesystem::path run;
  std::optional<int64_t> steps;   // The length of the run: one of these two,
  std::optional<double> minutes;  // The other length; without both, one pass over the data.
  int64_t batch_tokens = 8192;    // The tokens of a step, at least.
  // The tokens of a pass of the decoder, at most but for a longer conversation.
  std::optional<int64_t> pack_tokens;
  // Longer conversations are left out.  This and the next two have a default by the kind of the
  // model: SftDefaults in optimizer.h.
  std::optional<int64_t> length_max;
  std::optional<double> lr;
  std::optional<double> weight_decay;
  OptimizerOptions optimizer;  // Its lr and weight_decay are not read.
  uint64_t seed = 0;
  bool resume = false;
  std::optional<int64_t> checkpoint_steps;  // Between checkpoints; by default a minute.
  size_t workers = 1;  // Threads that each take a part of a step's conversations.
  at::Device device = at::kCPU;
  at::ScalarType dtype =
      at::kFloat;           // The type of the decoder; the parameters' masters are float32.
  RankPlace place;          // The rank of this process.
  bool recomputes = false;  // Keeps the inputs of blocks alone, for packs that need more memory.
};

struct Progress {
  StepMetrics metrics;
  double share = 0;  // The share of the run, from 0 to 1.
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

// kInvalidInput for what the user can mend; kIo where the disk is full.  PyTorch's exceptions pass.
Result<SftResult> run_sft(const SftOptions& options,
                          const std::function<void(const Progress&)>& on_step);

}  // namespace mc::train

#endif  // MC_TRAIN_SFT_H_
