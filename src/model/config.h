// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a decoder, as in a Hugging Face config.json.
//
// Three families are supported: Llama (RMSNorm before attention and feed-forward, rotary positions,
// grouped-query attention, SwiGLU), Qwen2 (Llama with biases of queries, keys and values) and Qwen3
// (Llama with an RMSNorm of each query and key head).  SmolLM2 is a Llama, and Qwen2.5 is a Qwen2.
// Other features of such files (other biases and activations, other scaling of rotary positions
// than Llama 3.1's, sliding windows) are rejected by name.
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
  int64_t vocab = 0;   // The number of rows of the embedding.
  int64_t hidden = 0;  // The width of the residual stream.
  int64_t ffn = 0;     // The width inside the feed-forward part.
  int64_t layers = 0;
  int64_t heads = 0;     // The number of query heads.
  int64_t kv_heads = 0;  // The number of key and value heads; it divides `heads`.
  int64_t head_dim = 0;  // Even; heads * head_dim need not be `hidden`.
  int64_t positions_max = 0;
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
  std::optional<ops::RopeScaling> rope_scaling;
  bool tied = true;           // True if the head and the embedding share their weights.
  std::vector<int64_t> ends;  // The tokens that end an answer (eos_token_id).
  // True if training began with the random weights of `musacoder init`.
  bool is_from_scratch = false;
  std::string dtype = "F32";  // The dtype of the weights on disk: "F32", "BF16" or "F16".
  bool has_qkv_bias() const { return family == Family::kQwen2; }
  bool has_qk_norm() const { return family == Family::kQwen3; }
};

// Parses a config.json.  kInvalidInput names the first key that is missing, out of range or not
// supported.
Result<Config> parse_config(std::string_view json);

// The configuration as JSON that parse_config and transformers read.
std::string config_json(const Config& config);

}  // namespace mc::model

#endif  // MC_MODEL_CONFIG_H_
