// SPDX-License-Identifier: Apache-2.0
#include "model/generate.h"

#include <iterator>
#include <map>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <gmock/gmock.h>

#include "model/testing/reference.h"

namespace mc::model {
namespace {

Config small() {
  Config config;
  config.vocab = 40;
  config.hidden = 24;
  config.ffn = 32;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.positions_max = 60;
  config.ends = {7};
  return config;
}

class Generation : public testing::Test {
 protected:
  Generation() {
    for (int i = 0; i < 13; ++i) {
      std::vector<int32_t> prompt(static_cast<size_t>(1 + i % 5), 3 + i % 3);
      requests_.push_back({"row" + std::to_string(i / 2), i % 2, prompt});
    }
  }
  std::map<size_t, Answer> run(const GenerateOptions& options) const {
    std::map<size_t, Answer> answers;
    generate({weights_, rope_}, requests_, options, [&](size_t i, const Answer& answer) {
      answers[i] = answer;
      return true;
    });
    return answers;
  }

  const Config config_ = small();
  const Parameters weights_{config_,
                            reference::random({layout_of(config_).total}, 3, at::kFloat) * 0.4};
  const ops::RopeTable rope_ = ops::rope_table(60, 6, 1e4);
  std::vector<Request> requests_;
};

TEST_F(Generation, AnswersDoNotDependOnTheBatchOrTheWorkers) {
  const auto alone = run({.tokens_max = 20, .batch = 1, .seed = 4});
  ASSERT_EQ(alone.size(), requests_.size());
  for (const GenerateOptions& options :
       {GenerateOptions{.tokens_max = 20, .batch = 64, .seed = 4},
        GenerateOptions{.tokens_max = 20, .batch = 5, .workers = 2, .seed = 4}}) {
    const auto together = run(options);
    ASSERT_EQ(together.size(), requests_.size());
    for (const auto& [i, answer] : alone) EXPECT_EQ(together.at(i).tokens, answer.tokens) << i;
  }
}

TEST_F(Generation, APromptOfSeveralRequestsIsPrefilledOnce) {
  std::vector<Request> group;
  for (int64_t i = 0; i < 12; ++i) group.push_back({"a", i, {3, 4, 5, 6, 8}});
  const auto count = [&](std::span<const Request> requests, int64_t batch) {
    std::map<int64_t, std::vector<int32_t>> answers;
    const GenerateCounts counts =
        generate({weights_, rope_}, requests, {.tokens_max = 20, .batch = batch, .seed = 4},
                 [&](size_t i, const Answer& answer) {
                   answers[requests[i].sample] = answer.tokens;
                   return true;
                 });
    return std::pair(counts.prefilled, answers);
  };
  const auto [prefilled, answers] = count(group, 12);
  EXPECT_EQ(prefilled, 5);
  EXPECT_EQ(answers.size(), 12U);
  for (const Request& one : group) {
    EXPECT_EQ(count(std::span(&one, 1), 1).second.at(one.sample), answers.at(one.sample));
  }
  // Slots become free one by one, while active slots still contain the same prompt.
  const auto [prefilled_by_turns, the_same] = count(group, 4);
  EXPECT_LE(prefilled_by_turns, 3 * 5);
  EXPECT_EQ(the_same, answers);
}

TEST_F(Generation, AnotherSeedGivesDifferentAnswers) {
  const auto first = run({.tokens_max = 20, .seed = 4});
  const auto second = run({.tokens_max = 20, .seed = 5});
  EXPECT_NE(first.at(0).tokens, second.at(0).tokens);
  EXPECT_NE(first.at(0).tokens, first.at(1).tokens);
}

TEST_F(Generation, AnswersEndAtAnEndTokenOrALimit) {
  size_t num_stopped = 0;
  for (const auto& [i, answer] : run({.tokens_max = 30, .seed = 1})) {
    EXPECT_THAT(answer.tokens, testing::Not(testing::Contains(7)));
    EXPECT_LE(answer.tokens.size(), 30U);
    EXPECT_EQ(answer.is_stopped, answer.tokens.size() < 30U);
    EXPECT_EQ(answer.log_probs.size(), answer.tokens.size() + (answer.is_stopped ? 1 : 0));
    num_stopped += answer.is_stopped ? 1 : 0;
  }
  EXPECT_GT(num_stopped, 0U);
  // The number of positions also ends a sequence: prompt and answer have at most 60 tokens, plus
  // the last chosen token, which needs no position.
  for (const auto& [i, answer] : run({.tokens_max = 500, .seed = 2})) {
    EXPECT_LE(answer.tokens.size() + requests_[i].prompt.size(), 61U);
  }
}

TEST_F(Generation, EachTokenAfterTheFirstIsOneDecodedStep) {
  for (const GenerateOptions& options :
       {GenerateOptions{.tokens_max = 9, .batch = 3, .seed = 4},
        GenerateOptions{.tokens_max = 9, .batch = 4, .workers = 2, .seed = 4},
        GenerateOptions{.tokens_max = 1, .batch = 64, .seed = 4}}) {
    int64_t expected = 0;
    const GenerateCounts counts =
        generate({weights_, rope_}, requests_, options, [&](size_t, const Answer& answer) {
          expected += std::ssize(answer.log_probs) - 1;
          return true;
        });
    EXPECT_EQ(counts.decoded, expected);
  }
  EXPECT_EQ(generate({weights_, rope_}, {}, {}, nullptr).prefilled, 0);
}

TEST_F(Generation, EndsWhenTheCallbackReturnsFalse) {
  for (const int64_t workers : {1, 3}) {
    int calls = 0;
    generate({weights_, rope_}, requests_, {.tokens_max = 5, .batch = 2, .workers = workers},
             [&](size_t, const Answer&) { return ++calls < 3; });
    EXPECT_EQ(calls, 3);
  }
}

TEST_F(Generation, AnEndTokenIsKeptApart) {
  for (const auto& [i, answer] : run({.tokens_max = 30, .seed = 1})) {
    EXPECT_EQ(answer.is_stopped ? answer.end : 7, 7);
  }
}

TEST_F(Generation, GreedyTokensAndLogProbsEqualTheReference) {
  const auto answers = run({.sampling = {.temperature = 0}, .tokens_max = 6});
  for (const auto& [i, answer] : answers) {
    std::vector<int32_t> sequence = requests_[i].prompt;
    for (size_t k = 0; k < answer.log_probs.size(); ++k) {
      const at::Tensor hidden = reference::decoder(weights_, sequence);
      const at::Tensor log_p =
          at::log_softmax(at::matmul(hidden.select(0, -1), weights_.head.t()), -1);
      const auto best = log_p.argmax().item<int64_t>();
      EXPECT_EQ(k < answer.tokens.size() ? answer.tokens[k] : 7, best);
      EXPECT_NEAR(answer.log_probs[k], log_p.max().item<double>(), 1e-4);
      sequence.push_back(static_cast<int32_t>(best));
    }
  }
}

}  // namespace
}  // namespace mc::model
