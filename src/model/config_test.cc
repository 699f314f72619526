// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <string>

#include <gmock/gmock.h>

namespace mc::model {
namespace {

using testing::HasSubstr;

// The configuration of a small Llama with one additional key.
std::string with(const std::string& key) {
  return R"({"model_type":"llama","vocab_size":10,"hidden_size":8,"intermediate_size":16,)"
         R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2)" +
         (key.empty() ? "" : "," + key) + "}";
}

TEST(Config, IsReadBackUnchanged) {
  auto config = parse_config(with(R"("rope_theta":1e6,"eos_token_id":[3,4])"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->head_dim, 2);
  const auto again = parse_config(config_json(*config));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->kv_heads, 2);
  EXPECT_EQ(again->rope_theta, 1e6);
  EXPECT_EQ(again->ends, (std::vector<int64_t>{3, 4}));
}

TEST(Config, RopeThetaMayBeInRopeParameters) {
  const auto config =
      parse_config(with(R"("rope_parameters":{"rope_type":"default","rope_theta":5})"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->rope_theta, 5);
}

TEST(Config, TheScalingOfLlama3IsReadBackUnchanged) {
  const auto config = parse_config(
      with(R"("rope_scaling":{"rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,)"
           R"("high_freq_factor":4.0,"original_max_position_embeddings":8192})"));
  ASSERT_TRUE(config) << config.error().message;
  const ops::RopeScaling expected{
      .factor = 32, .low_factor = 1, .high_factor = 4, .positions = 8192};
  EXPECT_EQ(config->rope_scaling, expected);
  const auto again = parse_config(config_json(*config));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->rope_scaling, expected);
}

TEST(Config, Qwen2HasBiasesAndTheFromScratchFlagIsReadBack) {
  auto config = parse_config(with(R"("model_type":"qwen2","use_sliding_window":false)"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->has_qkv_bias());
  EXPECT_FALSE(config->is_from_scratch);
  config->is_from_scratch = true;
  EXPECT_TRUE(parse_config(config_json(*config))->is_from_scratch);
}

TEST(Config, UnsupportedFeaturesAreRejectedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("model_type":"mamba")", "mamba"},
      {R"("attention_bias":true)", "attention_bias"},
      {R"("hidden_act":"gelu")", "gelu"},
      {R"("rope_scaling":{"rope_type":"yarn"})", "yarn"},
      {R"("rope_scaling":{"rope_type":"llama3","low_freq_factor":4})", "high_freq_factor"},
      {R"("quantization_config":{"bits":4})", "quantization_config"},
      {R"("layer_types":["sliding_attention"])", "sliding_attention"},
      {R"("partial_rotary_factor":0.5)", "partial_rotary_factor"},
      {R"("num_key_value_heads":3)", "does not divide"},
      {R"("head_dim":3)", "odd"},
      {R"("hidden_size":2,"num_attention_heads":4,"num_key_value_heads":4,"head_dim":null)",
       "is below"},
      {R"("mlp_bias":true)", "mlp_bias"},
      {R"("use_sliding_window":true)", "use_sliding_window"},
      {R"("num_hidden_layers":1001)", "from 1 to 1000"},
      {R"("hidden_size":16777217)", "from 1 to 16777216"},
      {R"("rope_theta":0)", "rope_theta"},
      {R"("rope_scaling":{"rope_type":"llama3","low_freq_factor":4,"high_freq_factor":4})",
       "high_freq_factor"},
      {R"("hidden_size":0)", "hidden_size"},
      {R"("hidden_size":1e30)", "hidden_size"},
      {R"("num_hidden_layers":"2")", "num_hidden_layers"},
      {R"("rms_norm_eps":-1)", "rms_norm_eps"},
  };
  for (const auto& [key, reason] : cases) {
    const auto config = parse_config(with(key));
    ASSERT_FALSE(config) << key;
    EXPECT_THAT(config.error().message, HasSubstr(reason));
  }
  EXPECT_FALSE(parse_config("no json"));
}

TEST(Config, MissingKeysHaveDefaults) {
  const auto config = parse_config(
      R"({"model_type":"llama","vocab_size":10,"hidden_size":16777216,"intermediate_size":1,)"
      R"("num_hidden_layers":1000,"num_attention_heads":4})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->family, Family::kLlama);
  EXPECT_EQ(config->hidden, 16777216);
  EXPECT_EQ(config->layers, 1000);
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->head_dim, 16777216 / 4);
  EXPECT_EQ(config->positions_max, 2048);
  EXPECT_EQ(config->norm_epsilon, 1e-6);
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_FALSE(config->tied);
  EXPECT_FALSE(config->has_qkv_bias());
  EXPECT_FALSE(config->has_qk_norm());
  EXPECT_TRUE(config->ends.empty());
  EXPECT_FALSE(parse_config(R"({"model_type":"llama","vocab_size":10})"));
}

TEST(Config, ASettingThatIsOffIsSupported) {
  for (const char* setting :
       {R"("attention_bias":false)", R"("hidden_act":"silu")", R"("quantization_config":null)",
        R"("layer_types":["full_attention","full_attention"])", R"("partial_rotary_factor":1.0)",
        R"("rope_scaling":null)", R"("rope_scaling":{"type":"default"})", R"("eos_token_id":7)",
        R"("head_dim":null)", R"("rms_norm_eps":null)"}) {
    EXPECT_TRUE(parse_config(with(setting))) << setting;
  }
  EXPECT_EQ(parse_config(with(R"("eos_token_id":7)"))->ends, std::vector<int64_t>{7});
  EXPECT_EQ(parse_config(with(R"("eos_token_id":[7,"a",8])"))->ends, (std::vector<int64_t>{7, 8}));
}

TEST(Config, TheDtypeHasTransformersName) {
  Config config = *parse_config(with(R"("rope_theta":5)"));
  for (const auto& [dtype, name] :
       {std::pair("F32", "float32"), std::pair("BF16", "bfloat16"), std::pair("F16", "float16")}) {
    config.dtype = dtype;
    EXPECT_THAT(config_json(config), HasSubstr(std::string("\"torch_dtype\": \"") + name));
  }
}

}  // namespace
}  // namespace mc::model
