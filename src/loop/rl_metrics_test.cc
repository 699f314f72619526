// SPDX-License-Identifier: Apache-2.0
//
// The metrics of a step are compared with their definitions, on random episodes.
#include "loop/rl_metrics.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "task/verdict.h"

namespace mc::loop {
namespace {

constexpr int kSamples = 3;  // The number of episodes in a group.

// The score of an outcome; empty for outcomes that reveal nothing about the answer.
std::optional<double> score_of(const std::string& outcome, std::mt19937& random) {
  if (outcome == "pass") return 1 + 0.25 * static_cast<double>(random() % 4);
  if (outcome == "unsupported" || outcome == "infra") return std::nullopt;
  return -0.1 * static_cast<double>(random() % 10);
}

// Episodes of up to three turns; an episode ends at a pass or at an answer without a score.
std::vector<Episode> random_episodes(std::mt19937& random) {
  const std::vector<std::string> outcomes = {"pass", "wrong", "illegal", "unsupported", "infra"};
  std::vector<Episode> episodes(kSamples * (1 + random() % 6));
  for (size_t i = 0; i < episodes.size(); ++i) {
    Episode& episode = episodes[i];
    episode.group = static_cast<int64_t>(i) / kSamples;
    episode.tokens.resize(1 + random() % 9);
    episode.log_probs.resize(episode.tokens.size());
    for (int turn = 0; turn < 3; ++turn) {
      Turn& one = episode.turns.emplace_back();
      one.judgement.outcome = outcomes[random() % outcomes.size()];
      one.judgement.s = score_of(one.judgement.outcome, random);
      one.num_tokens = static_cast<int64_t>(random() % 100);
      one.is_stopped = random() % 4 != 0;
      if (!one.judgement.s || *one.judgement.s >= 1) break;
    }
  }
  return episodes;
}

using Of = std::function<double(const Episode&)>;
using If = std::function<bool(const Episode&)>;

double mean(const std::vector<Episode>& episodes, const If& counts, const Of& of) {
  double sum = 0, num = 0;
  for (const Episode& episode : episodes) {
    if (!counts(episode)) continue;
    sum += of(episode);
    num += 1;
  }
  return num == 0 ? 0 : sum / num;
}

bool has_passed(const Episode& episode) { return episode.turns.back().judgement.outcome == "pass"; }
bool is_scored(const Episode& episode) { return episode.turns[0].judgement.s.has_value(); }
bool is_any(const Episode&) { return true; }

std::map<std::string, double> by_definition(const std::vector<Episode>& episodes,
                                            const UpdateOptions& options) {
  std::set<int64_t> solved;
  for (const Episode& episode : episodes) {
    if (has_passed(episode)) solved.insert(episode.group);
  }
  const auto is_gain = [&](const Episode& episode) {
    return episode.turns[0].judgement.outcome == "unsupported" && !solved.contains(episode.group);
  };
  const auto first_passes = [](const Episode& episode) {
    return episode.turns[0].judgement.outcome == "pass" ? 1.0 : 0.0;
  };
  const auto solves = [](const Episode& episode) {
    return is_scored(episode) && has_passed(episode);
  };
  std::map<std::string, double> expected = {
      {"reward", mean(
                     episodes, [&](const Episode& e) { return reward_of(e, options).has_value(); },
                     [&](const Episode& e) { return *reward_of(e, options); })},
      {"s_first",
       mean(episodes, is_scored, [](const Episode& e) { return *e.turns[0].judgement.s; })},
      {"accuracy_first", mean(episodes, is_scored, first_passes)},
      {"accuracy_best", mean(episodes, is_scored, has_passed)},
      {"turns_to_success",
       mean(episodes, solves,
            [](const Episode& e) { return static_cast<double>(e.turns.size()); })},
      {"answer_tokens",
       mean(episodes, is_any,
            [](const Episode& e) { return static_cast<double>(e.tokens.size()); })},
      {"cut_share",
       mean(episodes, is_any, [](const Episode& e) { return !e.turns[0].is_stopped; })},
      {"unsupported_gains", mean(episodes, is_any, is_gain)}};
  if (std::ranges::none_of(episodes, solves)) expected.erase("turns_to_success");
  for (const std::string& name : task::outcome_names()) {
    const auto has_it = [&](const Episode& e) { return e.turns[0].judgement.outcome == name; };
    if (std::ranges::any_of(episodes, has_it)) {
      expected["outcome/" + name] = mean(episodes, is_any, has_it);
    }
  }
  return expected;
}

TEST(StepFigures, EqualTheirDefinitions) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  const UpdateOptions options;
  for (int round = 0; round < 300; ++round) {
    const std::vector<Episode> episodes = random_episodes(random);
    Scalars scalars;
    add_episodes(episodes, options, scalars);
    std::map<std::string, double> found;
    for (const auto& [name, number] : scalars) found[std::string(name)] = number;
    ASSERT_EQ(found.size(), scalars.size()) << "a name occurs twice";
    const std::map<std::string, double> expected = by_definition(episodes, options);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, number] : expected) {
      ASSERT_TRUE(found.contains(name)) << name;
      ASSERT_NEAR(found[name], number, 1e-12) << name << ", seed " << kSeed << ", round " << round;
    }
  }
}

TEST(StepFigures, AreZeroWithoutEpisodes) {
  Scalars scalars;
  add_episodes({}, {}, scalars);
  for (const auto& [name, number] : scalars) EXPECT_EQ(number, 0) << name;
}

TEST(Evaluation, CountsPassesAmongAnswersWithAScore) {
  constexpr unsigned kSeed = 12;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 100; ++round) {
    std::vector<Episode> episodes = random_episodes(random);
    for (Episode& episode : episodes) episode.turns.resize(1);
    Scalars scalars;
    add_eval(episodes, scalars);
    ASSERT_NEAR(value_of(scalars, "eval/accuracy"), mean(episodes, is_scored, has_passed), 1e-12);
    ASSERT_EQ(value_of(scalars, "eval/scored"), std::ranges::count_if(episodes, is_scored));
  }
}

TEST(Retries, HaveASolveRateOnlyIfThereWereReplays) {
  Scalars none, some;
  add_retries({.num_groups = 4, .num_all_failed = 1}, none);
  add_retries({.num_groups = 4, .num_replays = 4, .num_solved = 3}, some);
  EXPECT_EQ(value_of(none, "all_failed_share"), 0.25);
  EXPECT_TRUE(std::ranges::none_of(
      none, [](const auto& scalar) { return scalar.first == "bdr/solve_rate"; }));
  EXPECT_EQ(value_of(some, "bdr/solve_rate"), 0.75);
}

// The expected groups are computed from the definition of spread.
TEST(Spread, KeepsGroupsWhoseRewardsDiffer) {
  constexpr unsigned kSeed = 13;
  std::mt19937 random(kSeed);
  const UpdateOptions options;
  size_t num_left_out = 0;
  for (int round = 0; round < 300; ++round) {
    const std::vector<Episode> episodes = random_episodes(random);
    std::vector<Episode> expected;
    size_t num_without = 0;
    for (size_t begin = 0; begin < episodes.size(); begin += kSamples) {
      std::vector<double> rewards;
      for (size_t i = begin; i < begin + kSamples; ++i) {
        if (const auto reward = reward_of(episodes[i], options)) rewards.push_back(*reward);
      }
      // A group with fewer than two rewards is kept here; the loss leaves it out for that reason.
      const bool is_dropped = rewards.size() < 2;
      const bool is_flat =
          !is_dropped && std::ranges::max(rewards) - std::ranges::min(rewards) < 1e-6;
      num_without += is_flat ? 1 : 0;
      if (is_flat) continue;
      expected.insert(expected.end(), episodes.begin() + static_cast<std::ptrdiff_t>(begin),
                      episodes.begin() + static_cast<std::ptrdiff_t>(begin + kSamples));
    }
    ASSERT_EQ(with_spread(episodes, options), expected) << "seed " << kSeed << ", round " << round;
    ASSERT_EQ(num_without_spread(episodes, options), num_without);
    num_left_out += num_without;
  }
  EXPECT_GT(num_left_out, 0u);
}

}  // namespace
}  // namespace mc::loop
