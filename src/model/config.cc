// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <optional>

#include <nlohmann/json.hpp>

namespace mc::model {
namespace {

using Json = nlohmann::json;

// A model of a thousand times the largest one today is a mistake or an attack.
constexpr int64_t kSizeMax = int64_t{1} << 24;
constexpr int64_t kLayersMax = 1000;

Error wrong(const std::string& what) {
  return Error{ErrorCode::kInvalidInput, "config.json: " + what};
}

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
  if (type == "qwen3") return Family::kQwen3;
  return wrong("\"model_type\" is " + type.dump() + "; llama and qwen3 are supported");
}

// What a file may ask for and this decoder does not do.
Status refuse_unsupported(const Json& config) {
  for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
    if (is_on(config, key)) return wrong(std::string("\"") + key + "\" is not supported");
  }
  const Json act = config.value("hidden_act", Json("silu"));
  if (act != "silu") return wrong("\"hidden_act\" is " + act.dump() + "; only silu is supported");
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = config.find(key);
    if (rope == config.end() || !rope->is_object()) continue;
    const Json type = rope->value("rope_type", rope->value("type", Json("default")));
    if (type != "default")
      return wrong("rotary positions of type " + type.dump() +
                   " are not supported; only default is");
  }
  return ok();
}

// transformers 5 keeps it in "rope_parameters", older ones beside the rest.
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
  return ok();
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
  MC_TRY_VOID(check_heads(config), context);
  config.tied = is_on(json, "tie_word_embeddings");
  config.ends = ends_of(json);
  return config;
}

std::string config_json(const Config& config) {
  const bool is_llama = config.family == Family::kLlama;
  nlohmann::ordered_json json;
  json["architectures"] = {is_llama ? "LlamaForCausalLM" : "Qwen3ForCausalLM"};
  json["model_type"] = is_llama ? "llama" : "qwen3";
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
  if (!config.ends.empty()) json["eos_token_id"] = config.ends;
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

}  // namespace mc::model
