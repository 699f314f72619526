// SPDX-License-Identifier: Apache-2.0
//
// A model on disk in the layout of Hugging Face: config.json, model.safetensors (or the files of
// its index), tokenizer.json, and the files that other programs need.
//
// A model that was loaded is saved unchanged except for its weights: configuration, tokenizer and
// chat template byte for byte, and the weights in their original dtype.
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
  at::Tensor flat;  // The parameters in the order of layout_of(config), in float32 on the CPU.
  Tokenizer tokenizer;
  std::string tokenizer_json;  // The file's text.
  Chat chat = {};
  // The name and bytes of each source file that is saved unchanged; empty for a new model.
  std::map<std::string, std::string> kept_files = {};
};

// The tokens of a conversation.  kInvalidInput if the model's chat template rejects it.
Result<std::vector<int32_t>> tokens_of(const Model& model, std::span<const Message> messages,
                                       ChatEnd end);

// Loads a model.  Every tensor of the layout must be there with its shape; other tensors are
// rejected, except redundant ones (a head that shares the embedding's weights, cached frequencies).
// kInvalidInput or kNotFound otherwise.
Result<Model> load_model(const std::filesystem::path& folder);

// The maximum size of a file of weights; a larger model has several files and an index.
inline constexpr int64_t kShardBytesMax = 5'000'000'000;

// Writes the whole folder or nothing.
Status save_model(const std::filesystem::path& folder, const Model& model,
                  int64_t shard_bytes_max = kShardBytesMax);

// Random weights from a normal distribution: standard deviation 0.02, or 0.02 / sqrt(2 layers) for
// matrices that add to the residual stream (Radford et al., 2019); norms are 1, biases are 0. The
// seed determines the weights.
at::Tensor random_weights(const Config& config, uint64_t seed);

// The bytes of a contiguous tensor of floats on the CPU; valid as long as the tensor.
TensorBytes bytes_of(const at::Tensor& tensor);

}  // namespace mc::model

#endif  // MC_MODEL_MODEL_FOLDER_H_
