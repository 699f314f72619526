// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a decoder, as a Hugging Face config.json holds them.
//
// Three families: Llama (RMSNorm before attention and feed-forward, rotary positions, grouped-query
// attention, SwiGLU), Qwen2 (the same, with biases of queries, keys and values) and Qwen3 (the
// first again, with an RMSNorm of each query and key head).  SmolLM2 is a Llama, and Qwen2.5 is a
// Qwen2.  What such a file may ask for beyond that (other biases and activations, rotary positions
// that are scaled in another way than Llama 3.1's, sliding windows) is refused by name.
#ifndef MC_MODEL_CONFIG_H_
#define MC_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "model/ops.h"

namespace mc::model {

enum class Family { kLlama, kQwen2, kQwen3 };

struct Config {
  Family family = Family::kLlama;
  int64_t vocab = 0;   // Rows of the embedding.
  int64_t hidden = 0;  // Width of the residual stream.
  int64_t ffn = 0;     // Width inside the feed-forward part.
  int64_t layers = 0;
  int64_t heads = 0;     // Query heads.
  int64_t kv_heads = 0;  // Key and value heads; divides `heads`.
  int64_t head_dim = 0;  // Even; heads * head_dim need not be `hidden`.
  int64_t positions_max = 0;
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
  std::optional<ops::RopeScaling> rope_scaling;
  bool tied = true;              // The head is the embedding.
  std::vector<int64_t> ends;     // Tokens that end an answer (eos_token_id).
  bool is_from_scratch = false;  // The first weights were random ones of `musacoder init`.
  std::string dtype = "F32";     // The dtype of weights on the disk: "F32", "BF16" or "F16".
  bool has_qkv_bias() const { return family == Family::kQwen2; }
  bool has_qk_norm() const { return family == Family::kQwen3; }
};

// kInvalidInput names the first key that is missing, absurd or not supported.
Result<Config> parse_config(std::string_view json);

// The JSON that parse_config and transformers read.
std::string config_json(const Config& config);

}  // namespace mc::model

#endif  // MC_MODEL_CONFIG_H_
