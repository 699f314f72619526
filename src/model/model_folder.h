// SPDX-License-Identifier: Apache-2.0
//
// A model on the disk, as Hugging Face keeps it: config.json, model.safetensors (or the files of
// its index), tokenizer.json, and what other programs want beside them.
#ifndef MC_MODEL_MODEL_FOLDER_H_
#define MC_MODEL_MODEL_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/result.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "model/tokenizer.h"

namespace mc::model {

struct Model {
  Config config;
  at::Tensor flat;  // layout_of(config), float32, on the CPU.
  Tokenizer tokenizer;
  std::string tokenizer_json;  // The file's text.
};

// Every tensor of the layout must be there with its shape; others are refused but for those that
// stand for nothing (a tied head, cached frequencies).  kInvalidInput or kNotFound otherwise.
Result<Model> load_model(const std::filesystem::path& folder);

// Writes the folder whole or not at all.
Status save_model(const std::filesystem::path& folder, const Model& model);

// Weights from a normal distribution: standard deviation 0.02, and 0.02 / sqrt(2 layers) where a
// matrix adds to the residual stream (Radford et al., 2019); norms are 1.  The same for the same
// seed.
at::Tensor random_weights(const Config& config, uint64_t seed);

// The bytes of a contiguous float32 tensor on the CPU; valid as long as it.
TensorBytes bytes_of(const at::Tensor& tensor);

}  // namespace mc::model

#endif  // MC_MODEL_MODEL_FOLDER_H_
