// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a decoder, as a Hugging Face config.json holds them.
//
// Two families: Llama (RMSNorm before attention and feed-forward, rotary positions, grouped-query
// attention, SwiGLU) and Qwen3 (the same, with an RMSNorm of each query and key head).  What such a
// file may ask for beyond that (biases, other activations, scaled rotary positions, sliding
// windows) is refused by name, never ignored.
#ifndef MC_MODEL_CONFIG_H_
#define MC_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::model {

enum class Family { kLlama, kQwen3 };

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
  bool tied = true;           // The head is the embedding.
  std::vector<int64_t> ends;  // Tokens that end an answer (eos_token_id).
};

// kInvalidInput names the first key that is missing, absurd or not supported.
Result<Config> parse_config(std::string_view json);

// What parse_config and transformers read; weights in float32.
std::string config_json(const Config& config);

}  // namespace mc::model

#endif  // MC_MODEL_CONFIG_H_
