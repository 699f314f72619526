// SPDX-License-Identifier: Apache-2.0
#include "model/decoder.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include "model/model_folder.h"
#include "model/testing/reference.h"

namespace mc::model {
namespace {

using reference::distance;

Config small(Family family, bool tied) {
  Config config;
  config.family = family;
  config.vocab = 37;
  config.hidden = 24;
  config.ffn = 20;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;  // 4 * 8 differs from the width.
  config.positions_max = 64;
  config.tied = tied;
  return config;
}

// The weights are larger than initial ones, so that every part influences the result.
Parameters weights_of(const Config& config, at::ScalarType type) {
  const Layout layout = layout_of(config);
  return {config, reference::random({layout.total}, 7, type) * 0.3};
}

ops::RopeTable rope_of(const Config& config, at::ScalarType type) {
  const ops::RopeTable table = model::rope_of(config, config.positions_max, at::kCPU);
  return {table.cos_PD2.to(type), table.sin_PD2.to(type)};
}

const std::vector<std::vector<int32_t>> kSequences = {
    {3, 1, 4, 1, 5, 9, 2, 6}, {36}, {0, 35, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6}};

struct Shape {
  Family family;
  bool tied;
  ops::Form form;
};
class Decoder : public testing::TestWithParam<Shape> {
 protected:
  const Config config = small(GetParam().family, GetParam().tied);
  const Parameters weights = weights_of(config, at::kDouble);
  const ops::RopeTable rope = rope_of(config, at::kDouble);
  const ForwardContext context{weights, rope, GetParam().form};
};
INSTANTIATE_TEST_SUITE_P(Shapes, Decoder,
                         testing::Values(Shape{Family::kQwen2, true, ops::Form::kNative},
                                         Shape{Family::kQwen2, false, ops::Form::kGeneric},
                                         Shape{Family::kLlama, true, ops::Form::kNative},
                                         Shape{Family::kLlama, false, ops::Form::kGeneric},
                                         Shape{Family::kQwen3, true, ops::Form::kGeneric},
                                         Shape{Family::kQwen3, false, ops::Form::kNative}));

TEST_P(Decoder, ABatchGivesTheReferenceResultOfEachSequence) {
  const at::Tensor got = forward(context, make_batch(kSequences, at::kCPU), nullptr);
  std::vector<at::Tensor> expected;
  for (const auto& sequence : kSequences) expected.push_back(reference::decoder(weights, sequence));
  EXPECT_LE(distance(got, at::cat(expected)), 1e-10);
}

TEST_P(Decoder, GradientsOfAllParametersEqualAutograd) {
  const Parameters followed(config, reference::leaf(weights.flat));
  at::Tensor sum;
  for (const auto& sequence : kSequences) {
    const at::Tensor hidden = reference::decoder(followed, sequence);
    const at::Tensor part = (hidden * hidden * hidden).sum();
    sum = sum.defined() ? sum + part : part;
  }
  sum.backward();
  const Batch batch = make_batch(kSequences, at::kCPU);
  Tape tape;
  const at::Tensor hidden = forward(context, batch, &tape);
  Parameters gradients(config, at::zeros_like(weights.flat));
  backward(context, batch, tape, hidden * hidden * 3, gradients);
  for (const Slice& slice : layout_of(config).slices) {
    const auto part = [&](const at::Tensor& flat) {
      return flat.narrow(0, slice.offset, slice.count);
    };
    if (slice.name == "lm_head.weight") continue;  // The head is not part of forward().
    EXPECT_LE(distance(part(gradients.flat), part(followed.flat.grad())), 1e-9) << slice.name;
  }
}

TEST_P(Decoder, RecomputationGivesTheSameGradients) {
  const Batch batch = make_batch(kSequences, at::kCPU);
  std::vector<at::Tensor> flats;
  for (const Keep keep : {Keep::kAll, Keep::kInputs}) {
    const ForwardContext kept{weights, rope, GetParam().form, keep};
    Tape tape;
    const at::Tensor hidden = forward(kept, batch, &tape);
    Parameters gradients(config, at::zeros_like(weights.flat));
    backward(kept, batch, tape, hidden * 3, gradients);
    flats.push_back(gradients.flat);
  }
  EXPECT_EQ(distance(flats[1], flats[0]), 0);
}

// The prompt fills the cache in one pass; the other tokens follow one by one, in two slots at once.
TEST_P(Decoder, DecodingTokenByTokenEqualsOneForwardPass) {
  const std::vector<std::vector<int32_t>> prompts = {{3, 1, 4, 1, 5}, {2, 7}};
  const std::vector<std::vector<int32_t>> whole = {{3, 1, 4, 1, 5, 9, 2}, {2, 7, 1, 8}};
  Cache cache(config, 3, 16, weights.flat.options());
  const std::vector<int64_t> slots = {0, 1};
  prefill(context, make_batch(prompts, at::kCPU), cache, slots);
  std::vector<int64_t> lengths = {5, 2};
  at::Tensor hidden;
  for (int step = 0; step < 2; ++step) {
    const std::vector<int64_t> next = {whole[0][static_cast<size_t>(lengths[0])],
                                       whole[1][static_cast<size_t>(lengths[1])]};
    hidden = decode_step(context, at::tensor(next, at::kLong), cache, lengths);
    for (int64_t& length : lengths) ++length;
  }
  for (size_t i = 0; i < 2; ++i) {
    const at::Tensor expected = reference::decoder(weights, whole[i]);
    EXPECT_LE(distance(hidden.select(0, static_cast<int64_t>(i)), expected.select(0, -1)), 1e-10);
  }
}

// The folders are written by tests/goldens/make_model_golden.py with transformers.
// $MC_MODEL_GOLDEN names other ones.
std::vector<std::filesystem::path> golden_folders() {
  const char* other = std::getenv("MC_MODEL_GOLDEN");
  const std::filesystem::path root =
      other != nullptr ? other : std::string(MC_SOURCE_DIR) + "/src/model/golden";
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  return folders;
}

at::Tensor floats(const TensorBytes& bytes) {
  at::Tensor copy = reference::random(bytes.shape, 0, at::kFloat);
  std::copy(bytes.bytes.begin(), bytes.bytes.end(),
            static_cast<std::byte*>(copy.mutable_data_ptr()));
  return copy;
}

TEST(DecoderGolden, LogitsEqualThoseOfTransformers) {
  const auto folders = golden_folders();
  ASSERT_GE(folders.size(), 2U);
  for (const auto& folder : folders) {
    const auto model = load_model(folder);
    ASSERT_TRUE(model) << model.error().message;
    const auto file = TensorFile::open(folder / "expected.safetensors");
    ASSERT_TRUE(file) << file.error().message;
    const at::Tensor tokens = floats(file->tensors().at("tokens"));
    const at::Tensor expected = floats(file->tensors().at("logits"));
    const float* first = tokens.const_data_ptr<float>();
    const std::vector<std::vector<int32_t>> sequence = {{first, first + tokens.numel()}};
    const Parameters weights(model->config, model->flat);
    const ops::RopeTable rope = rope_of(model->config, tokens.numel(), at::kCPU);
    const at::Tensor logits = ops::linear(
        forward({weights, rope}, make_batch(sequence, at::kCPU), nullptr), weights.head);
    const double difference = (logits - expected).abs().max().item<double>();
    RecordProperty(folder.filename().string(), std::to_string(difference));
    EXPECT_LE(difference, 1e-4) << folder;
    EXPECT_TRUE(logits.argmax(-1).equal(expected.argmax(-1))) << folder;
  }
}

}  // namespace
}  // namespace mc::model
