// SPDX-License-Identifier: Apache-2.0
#include "train/sft.h"

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "model/testing/small_model.h"
#include "train/optimizer.h"
#include "train/samples.h"

namespace mc::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Json = nlohmann::json;

class Sft : public testing::Test {
 protected:
  Sft() : room_(std::move(TemporaryDirectory::create("sft").value())) {
    EXPECT_TRUE(model::save_model(room_.path() / "start", model_));
    std::string lines;
    for (int i = 0; i < 8; ++i) {
      const std::string content(static_cast<size_t>(1 + i), static_cast<char>('a' + i));
      lines += Json{{"messages",
                     {{{"role", "user"}, {"content", "say"}},
                      {{"role", "assistant"}, {"content", content}}}}}
                   .dump() +
               "\n";
    }
    EXPECT_TRUE(write_file_atomically(room_.path() / "data.jsonl", lines));
  }

  SftOptions options(const std::string& run) const {
    SftOptions options;
    options.model = room_.path() / "start";
    options.data = room_.path() / "data.jsonl";
    options.run = room_.path() / run;
    options.steps = 6;
    options.batch_tokens = 120;
    options.pack_tokens = 100;
    options.lr = 1e-2;
    options.optimizer.warmup = 0.25;
    options.checkpoint_steps = 2;
    return options;
  }

  static SftResult run(const SftOptions& options, std::vector<Progress>* steps = nullptr) {
    const auto result = run_sft(options, [&](const Progress& progress) {
      if (steps != nullptr) steps->push_back(progress);
    });
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? *result : SftResult{};
  }

  at::Tensor weights_of(const std::string& run) const {
    const auto model = model::load_model(room_.path() / run / "model");
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    return model ? model->flat : at::Tensor();
  }

  std::vector<Json> metrics_of(const std::string& run) const {
    std::vector<Json> all;
    std::istringstream lines(read_file(room_.path() / run / "metrics.jsonl", 1 << 20).value());
    for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
    return all;
  }

  const model::Model model_ = model::small_model();
  TemporaryDirectory room_;
};

TEST_F(Sft, AStepIsWhatTheOptionsSay) {
  std::vector<Progress> steps;
  const SftResult result = run(options("run"), &steps);
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.conversations, 8);
  EXPECT_EQ(result.too_long, 0);
  EXPECT_GT(result.elapsed_s, 0);
  ASSERT_EQ(steps.size(), 6U);
  int64_t tokens = 0;
  double elapsed_s = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepMetrics& step = steps[i].metrics;
    const auto number = static_cast<int64_t>(i + 1);
    EXPECT_EQ(step.step, number);
    EXPECT_DOUBLE_EQ(step.lr, learning_rate({.lr = 1e-2, .warmup = 0.25}, (i + 1) / 6.0));
    EXPECT_DOUBLE_EQ(steps[i].share, static_cast<double>(number) / 6);
    EXPECT_EQ(steps[i].steps, 6);
    EXPECT_GE(step.tokens - tokens, 120);
    // A batch ends with the conversation that reaches batch_tokens.
    EXPECT_LT(step.tokens - tokens, 120 + 60);
    EXPECT_NEAR(static_cast<double>(step.tokens - tokens) / step.tokens_per_s,
                step.elapsed_s - elapsed_s, 1e-9);
    EXPECT_GT(step.grad_norm, 0);
    tokens = step.tokens;
    elapsed_s = step.elapsed_s;
  }
  EXPECT_EQ(result.tokens, tokens);
  EXPECT_EQ(result.elapsed_s, elapsed_s);
  EXPECT_EQ(steps.front().metrics.epoch, 0);
  EXPECT_GT(steps.back().metrics.epoch, 0);  // The data have some 220 tokens.
  EXPECT_EQ(result.loss, steps.back().metrics.loss);
  EXPECT_NEAR(steps[0].metrics.loss, std::log(258.0), 0.4);  // Random weights know nothing.
  EXPECT_LT(result.loss, 0.97 * steps[0].metrics.loss);
  const std::vector<Json> lines = metrics_of("run");
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[5]["step"], 6);
  EXPECT_EQ(lines[5]["loss"], result.loss);
  EXPECT_TRUE(fs::exists(room_.path() / "run" / "checkpoints" / "step-00000006"));
  EXPECT_FALSE(weights_of("run").equal(model_.flat));
}

TEST_F(Sft, WorkersPacksAndRecomputationDoNotChangeTheResult) {
  run(options("one"));
  SftOptions other = options("other");
  other.workers = 3;
  other.pack_tokens = 1000;
  other.recomputes = true;
  run(other);
  const at::Tensor one = weights_of("one");
  EXPECT_LT((one - weights_of("other")).abs().max().item<double>(), 1e-4);
}

TEST_F(Sft, AnInterruptedRunResumesWithTheSameResult) {
  run(options("whole"));
  struct Killed {};
  const auto kill = [](const Progress& progress) {
    if (progress.metrics.step == 5) throw Killed{};
  };
  EXPECT_THROW((void)run_sft(options("parts"), kill), Killed);
  const auto refused = run_sft(options("parts"), [](const Progress&) {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("holds a run already"));
  SftOptions resumed = options("parts");
  resumed.resume = true;
  std::vector<Progress> steps;
  const SftResult result = run(resumed, &steps);
  ASSERT_EQ(steps.size(), 2U);  // The last checkpoint is that of step 4.
  EXPECT_EQ(steps[0].metrics.step, 5);
  EXPECT_EQ(result.steps, 6);
  EXPECT_TRUE(weights_of("parts").equal(weights_of("whole")));
  const auto whole = metrics_of("whole"), parts = metrics_of("parts");
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char* key : {"step", "loss", "grad_norm", "lr", "tokens", "epoch"}) {
      EXPECT_EQ(parts[i][key], whole[i][key]) << i << " " << key;
    }
  }
  SftOptions changed = resumed;
  changed.seed = 9;
  EXPECT_FALSE(run_sft(changed, [](const Progress&) {}));
}

TEST_F(Sft, WithoutALengthTheRunIsOneEpoch) {
  SftOptions epoch = options("epoch");
  epoch.steps.reset();
  std::vector<Progress> steps;
  const SftResult result = run(epoch, &steps);
  const auto samples = read_samples(epoch.data, model_, 256);
  int64_t all = 0;
  for (const Sample& sample : samples->kept) all += static_cast<int64_t>(sample.tokens.size());
  EXPECT_GE(result.tokens, all);
  EXPECT_LT(result.tokens - steps.back().metrics.tokens + steps[steps.size() - 2].metrics.tokens,
            all);
}

TEST_F(Sft, TheTimeGivesTheLength) {
  SftOptions timed = options("timed");
  timed.steps.reset();
  timed.minutes = 0.3 / 60;
  std::vector<Progress> steps;
  const SftResult result = run(timed, &steps);
  EXPECT_GE(result.elapsed_s, 0.3);
  ASSERT_GE(steps.size(), 1U);
  EXPECT_EQ(steps.back().share, 1);
  EXPECT_EQ(steps.back().steps, std::nullopt);
  if (steps.size() > 1) {
    EXPECT_LT(steps[steps.size() - 2].metrics.elapsed_s, 0.3);
    EXPECT_NEAR(steps[0].share, steps[0].metrics.elapsed_s / 0.3, 1e-9);
  }
  EXPECT_GT(steps[0].metrics.lr, 0);
}

TEST_F(Sft, LongConversationsAreLeftOut) {
  SftOptions limited = options("limited");
  const auto samples = read_samples(limited.data, model_, 256);
  limited.length_max = static_cast<int64_t>(samples->kept[5].tokens.size());
  limited.steps = 1;
  const SftResult result = run(limited);
  EXPECT_EQ(result.conversations, 6);
  EXPECT_EQ(result.too_long, 2);
}

TEST_F(Sft, ALossThatIsNotFiniteEndsTheRun) {
  SftOptions wild = options("wild");
  wild.lr = 1e30;
  wild.optimizer.warmup = 0;
  const auto result = run_sft(wild, [](const Progress&) {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("the loss is no longer a finite number at step"));
  EXPECT_THAT(result.error().message, HasSubstr("a smaller --lr may help"));
}

}  // namespace
}  // namespace mc::train
