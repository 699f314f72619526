// SPDX-License-Identifier: Apache-2.0
#include "model/model_folder.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "core/file.h"
#include "model/decoder.h"
#include "model/testing/reference.h"
#include "model/testing/small_model.h"

namespace mc::model {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Model make_model(const std::string& dtype) {
  const std::string json =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},)"
      R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}})";
  auto tokenizer = Tokenizer::parse(json);
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  Config config;
  config.family = Family::kQwen2;
  config.vocab = 20;
  config.hidden = 8;
  config.ffn = 12;
  config.layers = 3;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 4;
  config.positions_max = 16;
  config.dtype = dtype;
  config.ends = {1};
  return {config, random_weights(config, 4), std::move(*tokenizer), json};
}

class ModelFolder : public testing::Test {
 protected:
  ModelFolder() : room_(std::move(TemporaryDirectory::create("model").value())) {}
  fs::path folder() const { return room_.path() / "model"; }

 private:
  TemporaryDirectory room_;
};

TEST_F(ModelFolder, WeightsInBfloat16AndInSeveralFilesAreReadBack) {
  const Model model = make_model("BF16");
  ASSERT_TRUE(save_model(folder(), model, /*shard_bytes_max=*/500));
  EXPECT_FALSE(fs::exists(folder() / "model.safetensors"));
  EXPECT_TRUE(fs::exists(folder() / "model.safetensors.index.json"));
  size_t num_files = 0;
  for (const auto& entry : fs::directory_iterator(folder())) {
    num_files += entry.path().extension() == ".safetensors" ? 1 : 0;
  }
  EXPECT_GT(num_files, 3U);
  const auto again = load_model(folder());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->flat.equal(model.flat.to(at::kBFloat16).to(at::kFloat)));
  EXPECT_EQ(again->config.dtype, "BF16");
}

TEST_F(ModelFolder, ASecondSaveWritesTheSameBytes) {
  ASSERT_TRUE(save_model(folder(), make_model("F16")));
  const auto first = load_model(folder());
  ASSERT_TRUE(first) << first.error().message;
  const fs::path other = folder().parent_path() / "again";
  ASSERT_TRUE(save_model(other, *first));
  for (const auto& entry : fs::directory_iterator(folder())) {
    const fs::path name = entry.path().filename();
    EXPECT_EQ(*read_file(other / name, 1 << 20), *read_file(entry.path(), 1 << 20)) << name;
  }
}

TEST_F(ModelFolder, AModelWithoutAChatFormatLoadsAndRejectsConversations) {
  ASSERT_TRUE(save_model(folder(), make_model("F32")));
  fs::remove(folder() / "tokenizer_config.json");
  const auto model = load_model(folder());
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<Message> messages = {{"user", "a"}};
  const auto tokens = tokens_of(*model, messages, ChatEnd::kPrompt);
  ASSERT_FALSE(tokens);
  EXPECT_THAT(tokens.error().message, testing::HasSubstr("no chat template"));
}

TEST_F(ModelFolder, ConversationsHaveTokens) {
  const Model model = small_model();
  ASSERT_TRUE(save_model(folder(), model));
  const auto loaded = load_model(folder());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->config.ends, model.config.ends);
  EXPECT_EQ(loaded->config.dtype, "F32");
  const std::vector<Message> messages = {{"user", "hi"}};
  const auto tokens = tokens_of(*loaded, messages, ChatEnd::kPrompt);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(loaded->tokenizer.decode(*tokens),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(loaded->flat.equal(model.flat));
}

TEST_F(ModelFolder, AFolderThatIsNoModelSaysWhatItLacks) {
  const auto error = [&] { return load_model(folder()).error().message; };
  EXPECT_THAT(error(), HasSubstr("is not a folder; a model is one with config.json"));
  ASSERT_TRUE(save_model(folder(), small_model()));
  for (const char* name : {"model.safetensors", "tokenizer.json", "config.json"}) {
    fs::remove(folder() / name);
    EXPECT_THAT(error(), HasSubstr(std::string("is no model: it has no ") + name));
  }
}

// Saves a model whose configuration then names other sizes.
class ChangedFolder : public ModelFolder {
 protected:
  std::string error_with(const std::string& before, const std::string& after,
                         const char* name = "config.json") {
    EXPECT_TRUE(save_model(folder(), small_model()));
    std::string text = read_file(folder() / name, 1 << 20).value();
    const size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos) << before;
    text.replace(at, before.size(), after);
    EXPECT_TRUE(write_file_atomically(folder() / name, text));
    const auto loaded = load_model(folder());
    if (!loaded) return loaded.error().message;
    const std::vector<Message> messages = {{"user", "hi"}};
    const auto tokens = tokens_of(*loaded, messages, ChatEnd::kPrompt);
    return tokens ? "" : tokens.error().message;
  }
};

TEST_F(ChangedFolder, TheWeightsMustFitTheConfiguration) {
  EXPECT_THAT(error_with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
              HasSubstr("the weights lack model.layers.2."));
  EXPECT_THAT(error_with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"),
              HasSubstr("the weights hold model.layers.1."));
  EXPECT_THAT(error_with("\"intermediate_size\": 24", "\"intermediate_size\": 23"),
              HasSubstr("its shape is not that of config.json"));
  EXPECT_THAT(error_with("\"vocab_size\": 258", "\"vocab_size\": 257"),
              HasSubstr("its shape is not that of config.json"));
}

TEST_F(ChangedFolder, TheEndOfAnAnswerIsATokenOfTheTemplate) {
  // The template ends an answer with <|im_end|>, token 257, which then ends answers as well.
  EXPECT_EQ(error_with("257", "65", "generation_config.json"), "");
  EXPECT_EQ(load_model(folder())->config.ends, (std::vector<int64_t>{65, 257}));
  EXPECT_EQ(error_with("[\n    257\n  ]", "\"none\"", "generation_config.json"), "");
  EXPECT_EQ(load_model(folder())->config.ends, std::vector<int64_t>{257});
  fs::remove(folder() / "generation_config.json");
  EXPECT_EQ(load_model(folder())->config.ends, std::vector<int64_t>{257});
}

TEST_F(ChangedFolder, AModelWithoutControlTokensHasNoChat) {
  EXPECT_THAT(error_with("<|im_start|>", "<|no_start|>", "tokenizer.json"),
              HasSubstr("the model has no chat template"));
}

TEST(RandomWeights, NormsAreOneAndBiasesAreZero) {
  const Model model = make_model("F32");
  for (const Slice& slice : layout_of(model.config).slices) {
    const at::Tensor part = model.flat.narrow(0, slice.offset, slice.count);
    if (slice.name.ends_with(".bias")) {
      EXPECT_EQ(part.abs().max().item<float>(), 0);
    } else if (slice.name.ends_with("norm.weight")) {
      EXPECT_EQ(part.min().item<float>(), 1);
    }
  }
}

}  // namespace
}  // namespace mc::model
