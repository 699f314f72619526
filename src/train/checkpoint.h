// SPDX-License-Identifier: Apache-2.0
//
// The state of a training run on disk: RUN/store.sqlite contains its settings, and
// RUN/checkpoints/step-00000100 contains state.json (step, position in the data, time) and
// state.safetensors (parameters, both moments, and the generator's weights if it has its own).
//
// A checkpoint is written under a temporary name and renamed when it is complete on disk, so each
// checkpoint that exists is whole.  The last two are kept.
#ifndef MC_TRAIN_CHECKPOINT_H_
#define MC_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/result.h"
#include "store/store.h"
#include "train/packing.h"

namespace mc::train {

struct RunState {
  int64_t step = 0;  // The number of completed steps.
  int64_t tokens = 0;
  double elapsed_s = 0;
  DataPosition position;
  std::string more;  // Further state of a run, in the format of its caller; "" if there is none.
};

struct RunTensors {
  at::Tensor master;
  at::Tensor first;
  at::Tensor second;
  // RL: the generator's own weights; undefined if it uses the trainer's.
  at::Tensor generator = {};
};

enum class Existing { kRefuse, kResume };

// Creates a run folder, or opens the existing one to resume the run.  kInvalidInput if this is not
// allowed, or if the existing run has other settings (JSON: all that must be the same).
Result<store::RunFolder> open_run(const std::filesystem::path& run, const std::string& kind,
                                  const std::string& settings, Existing existing);

Status save_checkpoint(const std::filesystem::path& run, const RunState& state,
                       const RunTensors& tensors);

// Copies the newest checkpoint into `tensors`.  kNotFound if the run has none.
Result<RunState> load_checkpoint(const std::filesystem::path& run, const RunTensors& tensors);

}  // namespace mc::train

#endif  // MC_TRAIN_CHECKPOINT_H_
