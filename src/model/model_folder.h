// SPDX-License-Identifier: Apache-2.0
//
// A model on the disk, as Hugging Face keeps it: config.json, model.safetensors (or the files of
// its index), tokenizer.json, and what other programs want beside them.
//
// A model that came from elsewhere is written as it came: its configuration, tokenizer and chat
// template byte for byte, and its weights in the dtype that they had.
#ifndef MC_MODEL_MODEL_FOLDER_H_
#define MC_MODEL_MODEL_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/result.h"
#include "model/chat.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "model/tokenizer.h"

namespace mc::model {

struct Model {
  Config config;
  at::Tensor flat;  // layout_of(config), float32, on the CPU.
  Tokenizer tokenizer;
  std::string tokenizer_json;  // The file's text.
  Chat chat = {};
  // Names and bytes of the source's files that are written as they are; empty for a new model.
  std::map<std::string, std::string> kept_files = {};
};

// The tokens of a conversation.  kInvalidInput where the model's chat template refuses it.
Result<std::vector<int32_t>> tokens_of(const Model& model, std::span<const Message> messages,
                                       ChatEnd end);

// Every tensor of the layout must be there with its shape; others are refused but for those that
// stand for nothing (a tied head, cached frequencies).  kInvalidInput or kNotFound otherwise.
Result<Model> load_model(const std::filesystem::path& folder);

// Largest file of weights; a model with more has several and an index.
inline constexpr int64_t kShardBytesMax = 5'000'000'000;

// Writes the folder whole or not at all.
Status save_model(const std::filesystem::path& folder, const Model& model,
                  int64_t shard_bytes_max = kShardBytesMax);

// Weights from a normal distribution: standard deviation 0.02, and 0.02 / sqrt(2 layers) where a
// matrix adds to the residual stream (Radford et al., 2019); norms are 1, biases are 0.  The same
// for the same seed.
at::Tensor random_weights(const Config& config, uint64_t seed);

// The bytes of a contiguous tensor of floats on the CPU; valid as long as it.
TensorBytes bytes_of(const at::Tensor& tensor);

}  // namespace mc::model

#endif  // MC_MODEL_MODEL_FOLDER_H_
