// SPDX-License-Identifier: Apache-2.0
//
// The goldens of src/rl/golden, which tests/goldens/rl_goldens.py writes from the formulas alone.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "legality/extract.h"
#include "rl/advantage.h"
#include "rl/aggregation.h"
#include "rl/bdr.h"
#include "rl/mirror_pop.h"
#include "rl/objective.h"
#include "rl/prime_echo.h"
#include "rl/random.h"
#include "rl/score.h"
#include "rl/step.h"
#include "rl/testing/step_loss.h"

namespace mc::rl {
namespace {

using nlohmann::json;
using Optionals = std::vector<std::optional<double>>;

constexpr double kTolerance = 1e-6;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

json golden(const std::string& name, const std::string& table = "cases") {
  const auto text = read_file(MC_SOURCE_DIR "/src/rl/golden/" + name + ".json", 1 << 20);
  EXPECT_TRUE(text.has_value()) << name;
  if (!text) return json::array();
  json cases = json::parse(*text)[table];
  EXPECT_GT(cases.size(), 0U) << name << " " << table;
  return cases;
}

// The value, or empty for JSON null.
std::optional<double> optional(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<double>();
}

Optionals optionals(const json& values) {
  Optionals found;
  for (const json& value : values) found.push_back(optional(value));
  return found;
}

// The log-probabilities of an array; null marks a value that must not be read.  Empty if `values`
// is null.
std::vector<double> logps(const json& values) {
  std::vector<double> found;
  if (values.is_null()) return found;
  for (const json& value : values) found.push_back(value.is_null() ? kNan : value.get<double>());
  return found;
}

void expect_near(const Optionals& got, const json& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].has_value(), !expected[i].is_null()) << i;
    if (!got[i]) continue;
    EXPECT_NEAR(*got[i], expected[i].get<double>(), kTolerance) << i;
  }
}

void expect_near(const std::vector<double>& got, const json& expected) {
  expect_near(Optionals(got.begin(), got.end()), expected);
}

// ---- Score and PrimeEcho ------------------------------------------------------------------------

task::Outcome outcome_of(const json& row) {
  const std::map<std::string, task::Outcome> kByName{
      {"extraction", task::Unextractable{}}, {"illegal", task::Illegal{}},
      {"compile", task::CompileFailed{}},    {"runtime", task::Crashed{}},
      {"timeout", task::TimedOut{}},         {"oom", task::OutOfMemory{}},
      {"unsupported", task::Unsupported{}},  {"infra", task::Infra{}}};
  const std::string name = row["outcome"];
  if (name == "wrong") return task::Wrong{.q = row["q"], .specialised = false, .trials = {}};
  if (name != "pass") return kByName.at(name);
  task::Passed passed;
  if (!row["nu"].is_null()) {
    passed.performance.emplace();
    passed.performance->speedup_eager = {9, row["nu"], 10};
  }
  return passed;
}

TEST(Golden, Score) {
  for (const json& row : golden("score")) {
    task::Verdict verdict;
    verdict.outcome = outcome_of(row);
    const auto s =
        training_score(verdict, {.score = {.lambda = row["lambda"], .nu_max = row["nu_max"]},
                                 .speed = {.dead_zone = row["dead_zone"], .step = row["step"]}});
    SCOPED_TRACE(row.dump());
    expect_near(Optionals{s}, json::array({row["s"]}));
  }
}

TEST(Golden, PrimeEcho) {
  for (const json& row : golden("prime_echo")) {
    SCOPED_TRACE(row.dump());
    const PrimeEchoOptions options{.alpha = row["alpha"], .b_early = row["b_early"]};
    expect_near(Optionals{prime_echo(optionals(row["s"]), options)}, json::array({row["R"]}));
  }
}

// ---- Advantage ----------------------------------------------------------------------------------

AdvantageOptions advantage_options(const json& row) {
  return {.scale = row["scale"] == "std" ? AdvantageScale::kStd : AdvantageScale::kNone,
          .eps = row["eps"],
          .spread_min = row["spread_min"],
          .std_floor = row["std_floor"]};
}

TEST(Golden, Advantage) {
  const std::map<std::string, GroupStatus> kFates{{"spread", GroupStatus::kSpread},
                                                  {"no_spread", GroupStatus::kNoSpread},
                                                  {"dropped", GroupStatus::kDropped}};
  for (const json& row : golden("advantage")) {
    SCOPED_TRACE(row.dump());
    const auto group = group_advantage(optionals(row["rewards"]), advantage_options(row));
    EXPECT_EQ(group.status, kFates.at(row["fate"]));
    expect_near(group.advantage, row["advantage"]);
  }
}

// ---- Losses of tokens ---------------------------------------------------------------------------

ClipOptions clip_options(const json& row) {
  return {.eps_low = row["eps_low"], .eps_high = row["eps_high"]};
}

// The tolerance is relative for large values and absolute for others.
void expect_close(double got, double expected) {
  EXPECT_NEAR(got, expected, kTolerance * std::max(1.0, std::abs(expected)));
}

TEST(Golden, Objective) {
  const std::map<std::string, Clipped> kBounds{
      {"no", Clipped::kNo}, {"low", Clipped::kLow}, {"high", Clipped::kHigh}};
  for (const json& row : golden("objective")) {
    SCOPED_TRACE(row.dump());
    const TokenLoss loss = clipped_loss(row["log_ratio"], row["A"], clip_options(row));
    expect_close(loss.value, row["loss"]);
    expect_close(loss.gradient, row["gradient"]);
    EXPECT_EQ(loss.clipped, kBounds.at(row["clipped"]));
  }
}

TEST(Golden, Kl) {
  for (const json& row : golden("kl")) {
    SCOPED_TRACE(row.dump());
    const KlEstimate estimate = kl_estimate(row["log_u"]);
    expect_close(estimate.value, row["k3"]);
    expect_close(estimate.gradient, row["k3_gradient"]);
  }
}

// ---- Aggregation --------------------------------------------------------------------------------

Aggregation aggregation_of(const json& row) {
  if (row["mode"] == "sequence_mean") return SequenceMean{};
  if (row["mode"] == "token_mean") return TokenMean{};
  return DrGrpo{.length_max = row["length_max"]};
}

TEST(Golden, Aggregation) {
  for (const json& row : golden("aggregation")) {
    SCOPED_TRACE(row.dump());
    const std::vector<size_t> lengths = row["lengths"];
    BatchSize size{.num_sequences = lengths.size(), .num_tokens = 0};
    for (const size_t length : lengths) size.num_tokens += length;
    std::vector<double> weights;
    double loss = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      weights.push_back(token_weight(aggregation_of(row), lengths[i], size));
      const double tokens = row["kept"][i] ? static_cast<double>(lengths[i]) : 0;
      loss += weights[i] * tokens * row["token_loss"][i].get<double>();
    }
    expect_near(weights, row["weight"]);
    EXPECT_NEAR(loss, row["loss"], kTolerance);
  }
}

// ---- MirrorPop ----------------------------------------------------------------------------------

template <typename T>
std::vector<T> repeated(const std::vector<T>& once, size_t times) {
  std::vector<T> all;
  for (size_t i = 0; i < times; ++i) all.insert(all.end(), once.begin(), once.end());
  return all;
}

MirrorPopOptions mirror_pop_options(const json& row) { return {.delta = row["delta"]}; }

TEST(Golden, MirrorPop) {
  for (const json& row : golden("mirror_pop")) {
    SCOPED_TRACE(row["name"]);
    const size_t times = row["repeat"];
    const Drift found =
        drift(repeated(logps(row["logp_old"]), times), repeated(logps(row["logp_rollout"]), times),
              repeated(row["mask"].get<std::vector<uint8_t>>(), times));
    EXPECT_EQ(found.num_tokens, row["num_tokens"]);
    EXPECT_NEAR(found.mean_abs, row["mean_abs"], kTolerance);
    EXPECT_NEAR(found.mean_signed, row["mean_signed"], kTolerance);
    EXPECT_EQ(keeps(found, mirror_pop_options(row)), row["kept"]);
  }
}

TEST(Golden, Minimum) {
  for (const json& row : golden("advantage", "minimum")) {
    SCOPED_TRACE(row.dump());
    Optionals rewards = optionals(row["rewards"]);
    give_minimum(rewards, row["unsupported"].get<std::vector<size_t>>());
    expect_near(rewards, row["R"]);
  }
}

// ---- Buffered Dynamic Retry ---------------------------------------------------------------------

FailedCandidate failure_of(const json& row) {
  FailedCandidate failure;
  failure.task = row["task"];
  failure.code = row["code"];
  failure.step = row["step"];
  failure.group = row["group"];
  return failure;
}

void expect_drawn(const std::optional<FailedCandidate>& got, const json& expected) {
  ASSERT_EQ(got.has_value(), !expected.is_null());
  if (!got) return;
  EXPECT_EQ(got->task, expected["task"]);
  EXPECT_EQ(got->code, expected["code"]);
}

std::vector<std::string> tasks_of(const RetryBuffer& buffer) {
  std::vector<std::string> tasks;
  for (const RetryItem& item : buffer.state().items) tasks.push_back(item.candidate.task);
  return tasks;
}

void follow(RetryBuffer& buffer, uint64_t seed, const json& operation) {
  if (operation["op"] == "draw") {
    const uint64_t step = operation["step"];
    const double u = uniform({.seed = seed, .step = step, .slot = operation["slot"]});
    expect_drawn(buffer.draw(u, step), operation["found"]);
  } else if (operation["op"] == "solved") {
    buffer.solved(operation["task"].get<std::string>());
  } else {
    std::vector<FailedCandidate> failures;
    for (const json& failure : operation["failures"]) failures.push_back(failure_of(failure));
    buffer.insert(failures);
    EXPECT_EQ(tasks_of(buffer), operation["queue"].get<std::vector<std::string>>());
  }
}

TEST(Golden, Bdr) {
  for (const json& row : golden("bdr")) {
    SCOPED_TRACE(row["name"]);
    RetryBuffer buffer({.capacity = row["capacity"],
                        .probability = row["probability"],
                        .replays_max = row["replays_max"]});
    for (const json& operation : row["operations"]) {
      SCOPED_TRACE(operation.dump());
      follow(buffer, row["seed"], operation);
    }
    std::vector<std::string> codes;
    for (const RetryItem& item : buffer.state().items) codes.push_back(item.candidate.code);
    EXPECT_EQ(codes, row["codes"].get<std::vector<std::string>>());
    EXPECT_EQ(buffer.state().replays, (row["replays"].get<std::map<std::string, uint32_t>>()));
  }
}

TEST(Golden, BdrUniform) {
  for (const json& row : golden("bdr", "uniform")) {
    const double u = uniform({.seed = row["seed"], .step = row["step"], .slot = row["slot"]});
    EXPECT_EQ(u, row["u_times_2_to_53"].get<double>() * 0x1p-53) << row;
  }
}

TEST(Golden, BdrChoice) {
  for (const json& row : golden("bdr", "choice")) {
    std::vector<FailedCandidate> candidates;
    for (const json& one : row["candidates"]) {
      FailedCandidate& candidate = candidates.emplace_back();
      candidate.s = one["s"];
      candidate.stage = static_cast<Stage>(one["stage"].get<int>());
      candidate.code = one["code"];
    }
    EXPECT_EQ(choose_failure(candidates), row["chosen"]) << row;
  }
}

TEST(Golden, BdrCode) {
  for (const json& row : golden("bdr", "code")) {
    const std::string answer = row["answer"];
    EXPECT_EQ(code_of(answer), row["code"]) << row;
    EXPECT_EQ(legality::visible_answer(answer), row["visible"]) << row;
  }
}

// ---- A whole step -------------------------------------------------------------------------------

StepOptions step_options(const json& row) {
  StepOptions options;
  options.advantage = advantage_options(row);
  options.mirror_pop.reset();
  if (!row["mirror_pop"].is_null()) options.mirror_pop = mirror_pop_options(row["mirror_pop"]);
  options.clip = clip_options(row);
  options.beta = row["beta"];
  options.aggregation = aggregation_of(row);
  return options;
}

// Owns what a StepBatch points to.
struct GoldenBatch {
  explicit GoldenBatch(const json& row)
      : mask(row["mask"]),
        logp_new(logps(row["logp_new"])),
        logp_old(logps(row["logp_old"])),
        logp_rollout(logps(row["logp_rollout"])),
        logp_ref(logps(row["logp_ref"])),
        sequence_ends(row["sequence_ends"]),
        group_ends(row["group_ends"]),
        rewards(optionals(row["rewards"])) {}

  StepBatch view() const {
    return {.tokens = {.mask = mask,
                       .logp_new = logp_new,
                       .logp_old = logp_old,
                       .logp_rollout = logp_rollout,
                       .logp_ref = logp_ref,
                       .entropy = {}},
            .sequence_ends = sequence_ends,
            .group_ends = group_ends,
            .rewards = rewards,
            .s_first = {}};
  }

  std::vector<uint8_t> mask;
  std::vector<double> logp_new;
  std::vector<double> logp_old;
  std::vector<double> logp_rollout;
  std::vector<double> logp_ref;
  std::vector<size_t> sequence_ends;
  std::vector<size_t> group_ends;
  Optionals rewards;
};

TEST(Golden, Step) {
  for (const json& row : golden("step")) {
    SCOPED_TRACE(row["name"]);
    const GoldenBatch batch(row["batch"]);
    const auto [plan, loss] = step_loss(batch.view(), step_options(row["options"]));
    expect_near(plan.advantage, row["advantage"]);
    EXPECT_NEAR(loss.value, row["loss"], kTolerance);
    EXPECT_NEAR(loss.policy, row["policy"], kTolerance);
    EXPECT_NEAR(loss.kl, row["kl"], kTolerance);
    expect_near(loss.gradient, row["gradient"]);
    EXPECT_EQ(loss.metrics.num_tokens, row["num_tokens"]);
    EXPECT_EQ(loss.metrics.num_clipped_low, row["clipped_low"]);
    EXPECT_EQ(loss.metrics.num_clipped_high, row["clipped_high"]);
  }
}

}  // namespace
}  // namespace mc::rl
