// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"

namespace mc::model {
namespace {

using Json = nlohmann::json;

// A model a thousand times larger than today's largest one is a mistake or an attack.
constexpr int64_t kSizeMax = int64_t{1} << 24;
constexpr int64_t kLayersMax = 1000;
// The key is our own; other programs ignore it.
constexpr const char* kFromScratch = "musacoder_from_scratch";

Error wrong(const std::string& what) { return invalid("config.json: " + what); }

Result<int64_t> size_of(const Json& config, const char* key, int64_t largest = kSizeMax) {
  const auto found = config.find(key);
  if (found == config.end()) return wrong(std::string("no \"") + key + "\"");
  if (!found->is_number_integer() || found->get<int64_t>() < 1 || found->get<int64_t>() > largest) {
    return wrong(std::string("\"") + key + "\" is not a number from 1 to " +
                 std::to_string(largest));
  }
  return found->get<int64_t>();
}

Result<int64_t> size_or(const Json& config, const char* key, int64_t otherwise) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return otherwise;
  return size_of(config, key);
}

Result<double> positive_or(const Json& config, const char* key, double otherwise) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return otherwise;
  if (!found->is_number() || !(found->get<double>() > 0)) {
    return wrong(std::string("\"") + key + "\" is not a positive number");
  }
  return found->get<double>();
}

bool is_on(const Json& config, const char* key) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() && found->get<bool>();
}

Result<Family> family_of(const Json& config) {
  const Json type = config.value("model_type", Json());
  if (type == "llama") return Family::kLlama;
  if (type == "qwen2") return Family::kQwen2;
  if (type == "qwen3") return Family::kQwen3;
  return wrong("\"model_type\" is " + type.dump() +
               "; llama (SmolLM2 too), qwen2 (Qwen2.5 too) and qwen3 are supported");
}

// Rejects settings of a config.json that this decoder does not support.
Status refuse_unsupported(const Json& config) {
  for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
    if (is_on(config, key)) return wrong(std::string("\"") + key + "\" is not supported");
  }
  const Json act = config.value("hidden_act", Json("silu"));
  if (act != "silu") return wrong("\"hidden_act\" is " + act.dump() + "; only silu is supported");
  if (config.contains("quantization_config") && !config["quantization_config"].is_null()) {
    return wrong("\"quantization_config\" is not supported; take the model that is not quantized");
  }
  const Json layers = config.value("layer_types", Json());
  for (const Json& layer : layers.is_array() ? layers : Json::array()) {
    if (layer != "full_attention") {
      return wrong("a layer of type " + layer.dump() + " is not supported; full_attention is");
    }
  }
  const double rotated = config.value("partial_rotary_factor", Json(1.0)).is_number()
                             ? config.value("partial_rotary_factor", 1.0)
                             : 1.0;
  if (rotated != 1) return wrong("\"partial_rotary_factor\" below 1 is not supported");
  return ok();
}

// The rope scaling of Llama 3.1, or none; other kinds are rejected.
Result<std::optional<ops::RopeScaling>> rope_scaling_of(const Json& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = config.find(key);
    if (rope == config.end() || !rope->is_object()) continue;
    const Json type = rope->value("rope_type", rope->value("type", Json("default")));
    if (type == "default") continue;
    if (type != "llama3") {
      return wrong("rotary positions of type " + type.dump() +
                   " are not supported; default and llama3 are");
    }
    ops::RopeScaling scaling;
    const std::string context = key;
    MC_TRY(scaling.factor, positive_or(*rope, "factor", 1), context);
    MC_TRY(scaling.low_factor, positive_or(*rope, "low_freq_factor", 1), context);
    MC_TRY(scaling.high_factor, positive_or(*rope, "high_freq_factor", 4), context);
    MC_TRY(scaling.positions, positive_or(*rope, "original_max_position_embeddings", 8192),
           context);
    if (scaling.high_factor <= scaling.low_factor) {
      return wrong("\"high_freq_factor\" is not above \"low_freq_factor\"");
    }
    return std::optional(scaling);
  }
  return std::optional<ops::RopeScaling>();
}

// Version 5 of transformers stores the value in "rope_parameters", older versions at the top level.
Result<double> rope_theta_of(const Json& config) {
  const auto rope = config.find("rope_parameters");
  const bool is_nested = rope != config.end() && rope->is_object();
  return positive_or(is_nested ? *rope : config, "rope_theta", 10000);
}

std::vector<int64_t> ends_of(const Json& config) {
  const auto found = config.find("eos_token_id");
  if (found == config.end()) return {};
  std::vector<int64_t> ends;
  for (const Json& id : found->is_array() ? *found : Json::array({*found})) {
    if (id.is_number_integer()) ends.push_back(id.get<int64_t>());
  }
  return ends;
}

Status check_heads(const Config& config) {
  if (config.heads % config.kv_heads != 0) {
    return wrong("\"num_key_value_heads\" does not divide \"num_attention_heads\"");
  }
  if (config.head_dim % 2 != 0) return wrong("\"head_dim\" is odd");
  if (config.head_dim == 0) return wrong("\"hidden_size\" is below \"num_attention_heads\"");
  return ok();
}

// The name of the class in transformers, and the "model_type".
std::pair<const char*, const char*> names_of(Family family) {
  switch (family) {
    case Family::kLlama:
      return {"LlamaForCausalLM", "llama"};
    case Family::kQwen2:
      return {"Qwen2ForCausalLM", "qwen2"};
    case Family::kQwen3:
      return {"Qwen3ForCausalLM", "qwen3"};
  }
  MC_CHECK(false);
}

}  // namespace

Result<Config> parse_config(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return wrong("is not a JSON object");
  Config config;
  MC_TRY(config.family, family_of(json), "read the model's configuration");
  MC_TRY_VOID(refuse_unsupported(json), "read the model's configuration");
  const std::string context = "read the model's configuration";
  MC_TRY(config.vocab, size_of(json, "vocab_size"), context);
  MC_TRY(config.hidden, size_of(json, "hidden_size"), context);
  MC_TRY(config.ffn, size_of(json, "intermediate_size"), context);
  MC_TRY(config.layers, size_of(json, "num_hidden_layers", kLayersMax), context);
  MC_TRY(config.heads, size_of(json, "num_attention_heads"), context);
  MC_TRY(config.kv_heads, size_or(json, "num_key_value_heads", config.heads), context);
  MC_TRY(config.head_dim, size_or(json, "head_dim", config.hidden / config.heads), context);
  MC_TRY(config.positions_max, size_or(json, "max_position_embeddings", 2048), context);
  MC_TRY(config.norm_epsilon, positive_or(json, "rms_norm_eps", 1e-6), context);
  MC_TRY(config.rope_theta, rope_theta_of(json), context);
  MC_TRY(config.rope_scaling, rope_scaling_of(json), context);
  MC_TRY_VOID(check_heads(config), context);
  config.tied = is_on(json, "tie_word_embeddings");
  config.ends = ends_of(json);
  config.is_from_scratch = is_on(json, kFromScratch);
  return config;
}

std::string config_json(const Config& config) {
  nlohmann::ordered_json json;
  const auto [architecture, type] = names_of(config.family);
  json["architectures"] = {architecture};
  json["model_type"] = type;
  json["vocab_size"] = config.vocab;
  json["hidden_size"] = config.hidden;
  json["intermediate_size"] = config.ffn;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["num_key_value_heads"] = config.kv_heads;
  json["head_dim"] = config.head_dim;
  json["max_position_embeddings"] = config.positions_max;
  json["rms_norm_eps"] = config.norm_epsilon;
  json["rope_theta"] = config.rope_theta;
  json["tie_word_embeddings"] = config.tied;
  json["hidden_act"] = "silu";
  json["attention_bias"] = false;
  if (config.rope_scaling) {
    const ops::RopeScaling& scaling = *config.rope_scaling;
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", scaling.factor},
                            {"low_freq_factor", scaling.low_factor},
                            {"high_freq_factor", scaling.high_factor},
                            {"original_max_position_embeddings", scaling.positions}};
  }
  if (!config.ends.empty()) json["eos_token_id"] = config.ends;
  json["torch_dtype"] = config.dtype == "BF16"  ? "bfloat16"
                        : config.dtype == "F16" ? "float16"
                                                : "float32";
  if (config.is_from_scratch) json[kFromScratch] = true;
  return json.dump(2) + "\n";
}

}  // namespace mc::model
