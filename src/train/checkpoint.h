// SPDX-License-Identifier: Apache-2.0
//
// The state of a training run on the disk: RUN/store.sqlite with its settings, and
// RUN/checkpoints/step-00000100 with state.json (step, place in the data, time) and
// state.safetensors (parameters, both moments, a generator's own weights).
//
// A checkpoint is written to another name and renamed when all of it is on the disk, so one that is
// there is whole.  The last two are kept.
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
  int64_t step = 0;  // Steps that are done.
  int64_t tokens = 0;
  double elapsed_s = 0;
  Place place;
  std::string more;  // The rest of the state of a run, in its own words; "" for none.
};

struct RunTensors {
  at::Tensor master;
  at::Tensor first;
  at::Tensor second;
  at::Tensor generator = {};  // RL: the generator's own weights; undefined where it has none.
};

enum class Existing { kRefuse, kResume };

// Begins a run in a folder, or goes on with the one that is there.  kInvalidInput where that may
// not be, or has other settings (JSON: all that must be the same).
Result<store::RunFolder> open_run(const std::filesystem::path& run, const std::string& kind,
                                  const std::string& settings, Existing existing);

Status save_checkpoint(const std::filesystem::path& run, const RunState& state,
                       const RunTensors& tensors);

// Copies the newest checkpoint into `tensors`.  kNotFound where there is none.
Result<RunState> load_checkpoint(const std::filesystem::path& run, const RunTensors& tensors);

}  // namespace mc::train

#endif  // MC_TRAIN_CHECKPOINT_H_
