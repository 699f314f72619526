// SPDX-License-Identifier: Apache-2.0
//
// Ablations on toy data: each of PrimeEcho, Buffered Dynamic Retry and MirrorPop changes the
// quantity that it is meant to change.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rl/advantage.h"
#include "rl/bdr.h"
#include "rl/mirror_pop.h"
#include "rl/prime_echo.h"
#include "rl/random.h"

namespace mc::rl {
namespace {

constexpr uint64_t kSeed = 17;

double luck(uint64_t step, uint64_t slot) { return uniform({kSeed, step, slot}); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The first-turn accuracy of a policy with one parameter after training: its first turn passes with
// probability p, and after a failed first turn the second always passes.
double first_turn_accuracy(const PrimeEchoOptions& options) {
  constexpr double kLr = 0.05;
  double theta = -1;
  for (uint64_t step = 0; step < 200; ++step) {
    std::vector<std::optional<double>> R;
    std::vector<double> slope;  // The derivative d log pi(sampled outcome) / d theta
    for (uint64_t sample = 0; sample < 8; ++sample) {
      const bool passes = luck(step, sample) < sigmoid(theta);
      using Turns = std::vector<std::optional<double>>;
      R.push_back(prime_echo(passes ? Turns{1.0} : Turns{-1.0, 1.0}, options));
      slope.push_back(passes ? 1 - sigmoid(theta) : -sigmoid(theta));
    }
    const GroupAdvantage group = group_advantage(R, {});
    for (size_t i = 0; i < slope.size(); ++i) theta += kLr * *group.advantage[i] * slope[i];
  }
  return sigmoid(theta);
}

TEST(Ablation, WithoutPrimeEchoTheFirstTurnDoesNotImprove) {
  EXPECT_GT(first_turn_accuracy({}), 0.9);
  // With the reward of the best turn alone, a repair is worth as much as a pass at the first turn.
  EXPECT_NEAR(first_turn_accuracy({.alpha = 0, .b_early = {}}), sigmoid(-1), 1e-9);
}

// The share of hard tasks that were ever solved: no sample of the original prompt passes, and every
// second sample of a replay does.
double solve_rate_of_hard_tasks(double probability) {
  constexpr uint64_t kTasks = 30;
  RetryBuffer buffer({.probability = probability});
  std::set<std::string> solved;
  for (uint64_t step = 0; step < 60; ++step) {
    std::vector<FailedCandidate> failures;
    for (uint64_t slot = 0; slot < 8; ++slot) {
      const auto replay = buffer.draw(luck(step, slot), step);
      if (replay && luck(step, 100 + slot) < 0.5) {
        solved.insert(replay->task);
        buffer.solved(replay->task);
        continue;
      }
      FailedCandidate failure;
      failure.task = replay ? replay->task : std::to_string((step * 8 + slot) % kTasks);
      failure.step = step;
      failure.group = slot;
      failures.push_back(failure);
    }
    buffer.insert(failures);
  }
  return static_cast<double>(solved.size()) / kTasks;
}

TEST(Ablation, WithoutRetriesNoHardTaskIsSolved) {
  EXPECT_GT(solve_rate_of_hard_tasks(0.1), 0.5);
  EXPECT_EQ(solve_rate_of_hard_tasks(0), 0);
}

// The mean |log rho| of the trained sequences, with a generator that is stale every third time. Its
// errors have both signs, so the signed mean of other methods, 0.001, would not show them.
double drift_of_what_is_trained(const MirrorPopOptions& options, double* signed_mean_max) {
  constexpr size_t kTokens = 400;
  double sum = 0;
  double num_kept = 0;
  for (uint64_t sequence = 0; sequence < 60; ++sequence) {
    const double noise = sequence % 3 == 0 ? 0.2 : 0.01;
    std::vector<double> old(kTokens, -1);
    std::vector<double> rollout(kTokens);
    for (size_t t = 0; t < kTokens; ++t) {
      const double size = noise * (0.5 + luck(sequence, t / 2));
      rollout[t] = -1 + (t % 2 == 0 ? size : -size);
    }
    const Drift found = drift(old, rollout, std::vector<uint8_t>(kTokens, 1));
    *signed_mean_max = std::max(*signed_mean_max, std::abs(found.mean_signed));
    if (!keeps(found, options)) continue;
    sum += found.mean_abs;
    ++num_kept;
  }
  return sum / num_kept;
}

TEST(Ablation, WithoutMirrorPopStaleSequencesAreTrained) {
  double signed_mean_max = 0;
  EXPECT_LT(drift_of_what_is_trained({}, &signed_mean_max), 0.02);
  EXPECT_GT(drift_of_what_is_trained({.delta = 1e9}, &signed_mean_max), 0.05);
  EXPECT_LT(signed_mean_max, 0.001);
}

}  // namespace
}  // namespace mc::rl
