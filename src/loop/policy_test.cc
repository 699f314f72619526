// SPDX-License-Identifier: Apache-2.0
#include "loop/policy.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "loop/update.h"
#include "train/checkpoint.h"

namespace mc::loop {
namespace {

constexpr double kDriftMax = 1e-5;  // The maximum drift between generator and trainer in float32.

model::Config small() {
  model::Config config;
  config.family = model::Family::kQwen3;
  config.vocab = 40;
  config.hidden = 16;
  config.ffn = 24;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 8;
  config.positions_max = 64;
  config.ends = {3};
  return config;
}

// A model with a tokenizer of two letters, which the tests below never use.
model::Model make_model() {
  const std::string json =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},)"
      R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}})";
  auto tokenizer = model::Tokenizer::parse(json);
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor flat = at::empty({model::layout_of(small()).total});
  flat.normal_(0, 0.4, generator);
  return {small(), flat, std::move(*tokenizer), json};
}

PolicyOptions options_with(size_t workers) {
  PolicyOptions options;
  options.temperature = 0.9;
  options.workers = workers;
  options.pack_tokens = 32;
  options.optimizer = {.lr = 1e-2, .weight_decay = 0, .norm_max = 100};
  return options;
}

std::vector<model::Request> requests() {
  std::vector<model::Request> all;
  for (int i = 0; i < 12; ++i) {
    all.push_back({std::to_string(i / 4), i % 4, {5, 6 + i / 4, 9}});
    for (int k = 0; k < i % 3; ++k) all.back().prompt.push_back(10 + k);
  }
  return all;
}

std::vector<Episode> generate(const Policy& policy, Writer writer = Writer::kGenerator) {
  const std::vector<model::Request> all = requests();
  std::vector<Episode> episodes(all.size());
  const model::GenerateOptions options{
      .sampling = {.temperature = 0.9}, .tokens_max = 20, .batch = 4, .seed = 7};
  policy.generate(
      all, options,
      [&](size_t i, const model::Answer& answer) {
        Episode& episode = episodes[i];
        episode.group = static_cast<int64_t>(i) / 4;
        episode.prompt = all[i].prompt;
        episode.tokens = answer.tokens;
        if (answer.is_stopped) episode.tokens.push_back(answer.end);
        episode.log_probs = answer.log_probs;
        // Answers that contain token 20 are correct.
        const bool passes = std::count(episode.tokens.begin(), episode.tokens.end(), 20) > 0;
        Turn turn;
        turn.judgement.s = passes ? 1.0 : -1.0;
        turn.num_tokens = static_cast<int64_t>(episode.tokens.size());
        episode.turns.push_back(turn);
      },
      writer);
  return episodes;
}

std::vector<train::Sample> samples_of(const std::vector<Episode>& episodes) {
  std::vector<train::Sample> samples;
  for (const Episode& episode : episodes) {
    samples.push_back({episode.prompt, static_cast<int64_t>(episode.prompt.size())});
    auto& tokens = samples.back().tokens;
    tokens.insert(tokens.end(), episode.tokens.begin(), episode.tokens.end());
  }
  return samples;
}

UpdateOptions options_of(double lr) {
  UpdateOptions options;
  options.lr = lr;
  options.prime_echo.b_early.clear();
  return options;
}

TEST(Policy, GeneratorAndTrainerAgreeOnLogProbabilities) {
  const Policy policy(make_model(), options_with(2));
  const std::vector<Episode> episodes = generate(policy);
  const std::vector<Scores> scores = policy.score(samples_of(episodes));
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < episodes.size(); ++i) {
    ASSERT_EQ(scores[i].log_probs.size(), episodes[i].log_probs.size());
    for (size_t t = 0; t < scores[i].log_probs.size(); ++t, ++count) {
      sum += std::abs(scores[i].log_probs[t] - episodes[i].log_probs[t]);
    }
  }
  ASSERT_GT(count, 50u);
  EXPECT_LE(sum / static_cast<double>(count), kDriftMax);
}

double drift_of(const Policy& policy) {
  const std::vector<Episode> episodes = generate(policy);
  const std::vector<Scores> scores = policy.score(samples_of(episodes));
  double sum = 0;
  for (size_t i = 0; i < episodes.size(); ++i) {
    const std::vector<uint8_t> mask(episodes[i].tokens.size(), 1);
    sum += rl::drift(scores[i].log_probs, episodes[i].log_probs, mask).mean_abs;
  }
  return sum / static_cast<double>(episodes.size());
}

TEST(Policy, AGeneratorOfLowerPrecisionDrifts) {
  PolicyOptions options = options_with(2);
  options.generate_dtype = at::kBFloat16;
  const double drift = drift_of(Policy(make_model(), options));
  EXPECT_GT(drift, 1e-4);
  EXPECT_LT(drift, 0.1);
}

TEST(Policy, ASeparateGeneratorChangesOnlyAtARefresh) {
  PolicyOptions options = options_with(2);
  options.generate_dtype = at::kFloat;
  Policy policy(make_model(), options);
  const std::vector<Episode> before = generate(policy);
  EXPECT_EQ(generate(policy, Writer::kTrainer), before);
  ASSERT_TRUE(update_policy(policy, before, options_of(1e-2)));
  EXPECT_EQ(generate(policy), before);
  EXPECT_NE(generate(policy, Writer::kTrainer), before);
  EXPECT_GT(drift_of(policy), 1e-3);
  policy.refresh_generator();
  EXPECT_EQ(generate(policy), generate(policy, Writer::kTrainer));
  EXPECT_LE(drift_of(policy), kDriftMax);
}

TEST(Policy, ACheckpointContainsTheGeneratorsOwnWeights) {
  const auto folder = TemporaryDirectory::create("policy");
  PolicyOptions options = options_with(1);
  options.generate_dtype = at::kBFloat16;
  Policy policy(make_model(), options), again(make_model(), options);
  const std::vector<Episode> before = generate(policy);
  ASSERT_TRUE(update_policy(policy, before, options_of(1e-2)));
  policy.refresh_generator();
  const std::vector<Episode> stale = generate(policy);
  ASSERT_NE(stale, before);
  ASSERT_TRUE(update_policy(policy, stale, options_of(1e-2)));
  ASSERT_TRUE(train::save_checkpoint(folder->path(), {}, policy.tensors()));
  const auto state = train::load_checkpoint(folder->path(), again.tensors());
  ASSERT_TRUE(state) << state.error().message;
  again.restored(2);
  EXPECT_EQ(generate(again), stale);
  EXPECT_EQ(generate(again, Writer::kTrainer), generate(policy, Writer::kTrainer));
}

TEST(Policy, TheSameRequestsGetBitIdenticalAnswers) {
  const Policy policy(make_model(), options_with(2));
  EXPECT_EQ(generate(policy), generate(policy));
}

// The expected values are finite differences of sum(g log_prob), in float64.
TEST(Policy, GradientEqualsFiniteDifferencesOfWeightedLogProbabilities) {
  const model::Config config = small();
  const at::Tensor flat = make_model().flat.to(at::kDouble);
  const auto table = model::ops::rope_table(64, 8, config.rope_theta);
  const model::ops::RopeTable rope{table.cos_PD2.to(at::kDouble), table.sin_PD2.to(at::kDouble)};
  const train::Sample first{{1, 2, 3, 4, 5, 6}, 2}, second{{9, 8, 7, 19}, 3};
  const std::vector<const train::Sample*> samples = {&first, &second};
  const auto g_of = [](size_t sequence, const Scores& now) {
    std::vector<double> g;
    for (size_t t = 0; t < now.log_probs.size(); ++t)
      g.push_back(0.3 * double(t) - double(sequence));
    return g;
  };
  const auto objective = [&](const at::Tensor& at_point) {
    const model::Parameters weights(config, at_point);
    const auto scores = score_sequences({weights, rope}, samples, 0.9, nullptr, nullptr);
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const std::vector<double> g = g_of(i, scores[i]);
      for (size_t t = 0; t < g.size(); ++t) sum += g[t] * scores[i].log_probs[t];
    }
    return sum;
  };
  const model::Parameters weights(config, flat);
  model::Parameters gradients(config, at::zeros_like(flat));
  score_sequences({weights, rope}, samples, 0.9, g_of, &gradients);
  constexpr double kStep = 1e-5;
  for (int64_t i = 7; i < flat.numel(); i += 97) {
    at::Tensor above = flat.clone(), below = flat.clone();
    above[i] += kStep;
    below[i] -= kStep;
    const double expected = (objective(above) - objective(below)) / (2 * kStep);
    EXPECT_NEAR(gradients.flat[i].item<double>(), expected, 1e-7) << i;
  }
}

TEST(UpdatePolicy, RaisesLogProbabilitiesInTheDirectionOfTheAdvantages) {
  Policy policy(make_model(), options_with(2));
  const std::vector<Episode> episodes = generate(policy);
  const std::vector<train::Sample> samples = samples_of(episodes);
  const std::vector<Scores> before = policy.score(samples);
  const auto result = update_policy(policy, episodes, options_of(1e-3));
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_FALSE(result->plan.skips_update());
  const std::vector<Scores> after = policy.score(samples);
  double change = 0;  // The sum of A times the change of the mean log-probability.
  for (size_t i = 0; i < samples.size(); ++i) {
    double sum = 0;
    for (size_t t = 0; t < after[i].log_probs.size(); ++t) {
      sum += after[i].log_probs[t] - before[i].log_probs[t];
    }
    change += result->plan.advantage[i].value_or(0) * sum /
              static_cast<double>(after[i].log_probs.size());
  }
  EXPECT_GT(change, 0);
  EXPECT_NEAR(result->policy_loss, 0, 1e-4) << "the ratio is 1, and advantages sum to 0";
}

// The sorted advantages of a group.
std::vector<double> advantages_of(const UpdateResult& result, size_t begin, size_t end) {
  std::vector<double> values;
  for (size_t i = begin; i < end; ++i) values.push_back(result.plan.advantage[i].value_or(0));
  std::ranges::sort(values);
  return values;
}

TEST(UpdatePolicy, ShuffledRewardsStayInTheirGroups) {
  Policy policy(make_model(), options_with(1));
  const std::vector<Episode> episodes = generate(policy);
  UpdateOptions options = options_of(0);
  const auto true_order = update_policy(policy, episodes, options);
  ASSERT_TRUE(true_order) << true_order.error().message;
  size_t num_moved = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    options.shuffle_seed = seed;
    const auto shuffled = update_policy(policy, episodes, options);
    ASSERT_TRUE(shuffled) << shuffled.error().message;
    num_moved += shuffled->plan.advantage != true_order->plan.advantage ? 1 : 0;
    size_t begin = 0;
    for (const auto group : groups_of(episodes)) {
      const size_t end = begin + group.size();
      EXPECT_EQ(advantages_of(*shuffled, begin, end), advantages_of(*true_order, begin, end));
      begin = end;
    }
  }
  EXPECT_GT(num_moved, 0u);
}

TEST(UpdatePolicy, ChangesNothingIfNoEpisodeHasAScore) {
  Policy policy(make_model(), options_with(1));
  std::vector<Episode> episodes = generate(policy);
  for (Episode& episode : episodes) episode.turns[0].judgement.s.reset();
  const at::Tensor before = policy.master().clone();
  const auto result = update_policy(policy, episodes, options_of(1));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->plan.skips_update());
  EXPECT_TRUE(policy.master().equal(before));
}

// The episodes of three groups: group 1 has no spread, group 2 has no scores.
std::vector<Episode> three_groups(const Policy& policy) {
  std::vector<Episode> episodes = generate(policy);
  for (size_t i = 0; i < episodes.size(); ++i) {
    std::optional<double>& s = episodes[i].turns[0].judgement.s;
    if (i / 4 == 0) s = i % 2 == 0 ? 1 : -1;
    if (i / 4 == 1) s = -1;
    if (i / 4 == 2) s.reset();
  }
  return episodes;
}

TEST(WithSpread, LeavesOutOnlyGroupsOfEqualRewards) {
  const std::vector<Episode> episodes = three_groups(Policy(make_model(), options_with(1)));
  const std::vector<Episode> kept = with_spread(episodes, options_of(1));
  EXPECT_EQ(num_without_spread(episodes, options_of(1)), 1U);
  ASSERT_EQ(kept.size(), 8U);
  EXPECT_TRUE(std::equal(kept.begin(), kept.begin() + 4, episodes.begin()));
  EXPECT_TRUE(std::equal(kept.begin() + 4, kept.end(), episodes.begin() + 8));
}

TEST(UpdatePolicy, GivesAnUnsupportedAnswerTheLowestRewardOfItsGroup) {
  Policy policy(make_model(), options_with(1));
  std::vector<Episode> episodes = three_groups(policy);
  // The scores of the other episodes are -1, 1, -1.
  Judgement& judgement = episodes[0].turns[0].judgement;
  judgement.outcome = "unsupported";
  judgement.s.reset();
  const auto result = update_policy(policy, episodes, options_of(1));
  ASSERT_TRUE(result) << result.error().message;
  const auto& advantage = result->plan.advantage;
  ASSERT_TRUE(advantage[0] && advantage[1]);
  EXPECT_LT(*advantage[0], 0);
  EXPECT_EQ(*advantage[0], *advantage[1]);
  EXPECT_EQ(result->plan.num_unscored, 4U);  // The third group has no scores at all.
}

TEST(UpdatePolicy, WithoutEpisodesChangesNothing) {
  Policy policy(make_model(), options_with(2));
  const at::Tensor before = policy.master().clone();
  const auto result = update_policy(policy, {}, options_of(1));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->plan.skips_update());
  EXPECT_TRUE(policy.master().equal(before));
}

TEST(RewardOf, DecreasesTowardsTheTokenLimitIfThePenaltyIsOn) {
  Episode episode;
  episode.turns.resize(1);
  episode.turns[0].judgement.s = 1;
  episode.turns[0].num_tokens = 90;
  UpdateOptions options = options_of(1);
  EXPECT_EQ(reward_of(episode, options), 1);
  options.overlong = {.tokens_max = 100, .margin = 20};
  EXPECT_EQ(reward_of(episode, options), 0.5);
  episode.turns[0].judgement.s.reset();
  EXPECT_FALSE(reward_of(episode, options));
}

TEST(UpdatePolicy, MakesAnOptimizerStepForEachMiniBatch) {
  Policy policy(make_model(), options_with(1));
  const std::vector<Episode> episodes = generate(policy);
  size_t num_groups = 1;
  for (size_t i = 1; i < episodes.size(); ++i) {
    num_groups += episodes[i].group != episodes[i - 1].group ? 1 : 0;
  }
  ASSERT_GT(num_groups, 1U);
  UpdateOptions options = options_of(1e-4);
  options.updates = 3;
  options.mini_batches = 2;
  const auto result = update_policy(policy, episodes, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->num_updates, 6);
  EXPECT_EQ(policy.optimizer_steps(), 6);
  EXPECT_GT(result->kl_old, 0);
}

TEST(UpdatePolicy, StopsUpdatesWhenTheKlToTheOldPolicyExceedsTheLimit) {
  Policy policy(make_model(), options_with(1));
  const std::vector<Episode> episodes = generate(policy);
  UpdateOptions options = options_of(1e-3);
  options.updates = 5;
  // The first update always takes place, because the policy is still the old one.
  options.kl_stop = 0;
  const auto result = update_policy(policy, episodes, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->num_updates, 2);
}

TEST(UpdatePolicy, RejectsAStaleSequence) {
  Policy policy(make_model(), options_with(1));
  std::vector<Episode> episodes = generate(policy);
  double sign = 1;
  for (double& log_prob : episodes[0].log_probs) log_prob += 0.2 * (sign = -sign);
  const auto result = update_policy(policy, episodes, options_of(1e-3));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->plan.advantage[0]);
  EXPECT_NEAR(result->drifts[0].mean_abs, 0.2, 1e-4);
}

}  // namespace
}  // namespace mc::loop
