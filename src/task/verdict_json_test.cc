// SPDX-License-Identifier: Apache-2.0
#include "task/verdict_json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "task/testing/verdict_generator.h"

namespace mc::task {
namespace {

using Json = nlohmann::json;

constexpr size_t kNumOutcomes = std::variant_size_v<Outcome>;
constexpr uint64_t kNumSeeds = 200;

std::string message_of(const Json& json) {
  const auto read = verdict_from_json(json.dump());
  return read ? "" : read.error().message;
}

TEST(VerdictJson, ReadsBackWhatItWroteForEveryOutcome) {
  for (size_t outcome = 0; outcome < kNumOutcomes; ++outcome) {
    for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
      SCOPED_TRACE(testing::Message() << "outcome " << outcome << ", seed " << seed);
      const Verdict verdict = generate_verdict(seed, outcome);
      const auto again = verdict_from_json(to_json(verdict, Indent::kCompact));
      ASSERT_TRUE(again.has_value()) << again.error().message;
      ASSERT_EQ(*again, verdict);
    }
  }
}

TEST(VerdictJson, IsTheSameVerdictInBothIndents) {
  const Verdict verdict = generate_verdict(7, 6);
  EXPECT_EQ(Json::parse(to_json(verdict, Indent::kCompact)),
            Json::parse(to_json(verdict, Indent::kPretty)));
  EXPECT_EQ(to_json(verdict, Indent::kCompact).find('\n'), std::string::npos);
}

TEST(VerdictJson, NamesTheOutcome) {
  for (size_t i = 0; i < kNumOutcomes; ++i) {
    const Json json = Json::parse(to_json(generate_verdict(1, i), Indent::kCompact));
    EXPECT_EQ(json["outcome"]["kind"], outcome_names()[i]);
  }
}

TEST(VerdictJson, WritesDoublesThatAreNotFiniteAsStrings) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Performance performance;
  performance.speedup_eager = {std::nan(""), kInfinity, -kInfinity};
  Verdict verdict;
  verdict.outcome = Passed{{}, performance};
  const std::string text = to_json(verdict, Indent::kCompact);
  EXPECT_EQ(Json::parse(text)["outcome"]["performance"]["speedup_eager"],
            (Json{{"median", "nan"}, {"low", "inf"}, {"high", "-inf"}}));
  const auto again = verdict_from_json(text);
  ASSERT_TRUE(again.has_value());
  const Estimate read = std::get<Passed>(again->outcome).performance->speedup_eager;
  EXPECT_TRUE(std::isnan(read.median));
  EXPECT_EQ(read.low, kInfinity);
  EXPECT_EQ(read.high, -kInfinity);
}

TEST(VerdictJson, WritesNullForABaselineThatWasNotTimed) {
  Performance performance;
  Verdict verdict;
  verdict.outcome = Passed{{}, performance};
  Json json = Json::parse(to_json(verdict, Indent::kCompact))["outcome"]["performance"];
  EXPECT_TRUE(json["speedup_compile"].is_null());
  EXPECT_TRUE(json["time_compile_us"].is_null());

  performance.speedup_compile = Estimate{1.5, 1.25, 1.75};
  verdict.outcome = Passed{{}, performance};
  json = Json::parse(to_json(verdict, Indent::kCompact))["outcome"]["performance"];
  EXPECT_EQ(json["speedup_compile"], (Json{{"median", 1.5}, {"low", 1.25}, {"high", 1.75}}));
}

TEST(VerdictJson, ReplacesBytesThatAreNotUtf8) {
  Verdict verdict;
  verdict.task =
      "a\xff"
      "b\xc3";
  verdict.telemetry.aten_ops["op\x80"] = 1;
  const auto again = verdict_from_json(to_json(verdict, Indent::kCompact));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->task, "a\uFFFDb\uFFFD");
  EXPECT_TRUE(again->telemetry.aten_ops.contains("op\uFFFD"));
}

TEST(VerdictJson, KeepsAll64BitsOfTheSeed) {
  Verdict verdict;
  verdict.seed = std::numeric_limits<uint64_t>::max();
  const std::string text = to_json(verdict, Indent::kCompact);
  EXPECT_EQ(Json::parse(text)["seed"], "18446744073709551615");
  EXPECT_EQ(verdict_from_json(text)->seed, verdict.seed);
}

// Each row changes one value of a valid verdict and expects a message that names it.
struct Spoiled {
  const char* pointer;  // JSON pointer.
  Json value;
  const char* message;
};

TEST(VerdictJson, NamesTheFieldThatCannotBeRead) {
  Verdict verdict;
  Trial trial;
  trial.constants["N"] = 3;
  trial.checks.resize(1);
  trial.checks[0].first_mismatches.resize(1);
  trial.findings.resize(1);
  verdict.outcome = Wrong{0.5, false, {trial}};
  const Json sound = Json::parse(to_json(verdict, Indent::kCompact));
  ASSERT_EQ(message_of(sound), "");

  const Spoiled kTable[] = {
      {"/schema", "musacoder-verdict/3", "schema: not \"musacoder-verdict/14\""},
      {"/task", 3, "task: not a string"},
      {"/seed", 3, "seed: not a string"},
      {"/seed", "-3", "seed: not a string of decimal digits"},
      {"/seed", "", "seed: not a string of decimal digits"},
      {"/seed", "18446744073709551616", "seed: needs more than 64 bits"},
      {"/backend", "tpu", "backend: not a backend: \"tpu\""},
      {"/outcome", Json::array(), "outcome: not an object with a \"kind\""},
      {"/outcome/kind", "perfect", "outcome: not an outcome: \"perfect\""},
      {"/outcome/kind", Json::array(), "outcome: not an outcome: array"},
      {"/outcome/kind", "pass", "outcome: lacks the field \"performance\""},
      {"/outcome/q", true, "outcome.q: not a number, \"nan\", \"inf\" or \"-inf\""},
      {"/outcome/extra", 1, "outcome: has a field that does not belong: \"extra\""},
      {"/outcome/trials", 0, "outcome.trials: not an array"},
      {"/outcome/trials/0", 0, "outcome.trials[0]: not an object"},
      {"/outcome/trials/0/passed", 1, "outcome.trials[0].passed: not a boolean"},
      {"/outcome/trials/0/index", 1.5, "outcome.trials[0].index: not an integer"},
      {"/outcome/trials/0/index", int64_t{1} << 40, "outcome.trials[0].index: too large"},
      {"/outcome/trials/0/constants/N", "3", "outcome.trials[0].constants[\"N\"]: not an integer"},
      {"/outcome/trials/0/checks/0/num_wrong", uint64_t{1} << 63,
       "outcome.trials[0].checks[0].num_wrong: too large"},
      {"/outcome/trials/0/checks/0/first_mismatches/0/index", "x",
       "outcome.trials[0].checks[0].first_mismatches[0].index: not an array"},
      {"/outcome/trials/0/findings/0/block", Json::array({1, 2}),
       "outcome.trials[0].findings[0].block: not an array of 3"},
      {"/telemetry/compile_cached", nullptr, "telemetry.compile_cached: not a boolean"},
  };
  for (const Spoiled& row : kTable) {
    Json json = sound;
    json[Json::json_pointer(row.pointer)] = row.value;
    EXPECT_EQ(message_of(json), row.message);
  }
}

TEST(VerdictJson, NamesTheFieldOfAMeasurementThatCannotBeRead) {
  Performance performance;
  performance.kernels.resize(1);
  Verdict verdict;
  verdict.outcome = Passed{{}, performance};
  const Json sound = Json::parse(to_json(verdict, Indent::kCompact));
  ASSERT_EQ(message_of(sound), "");

  const Spoiled kTable[] = {
      {"/outcome/performance/speedup_eager", 2.0,
       "outcome.performance.speedup_eager: not an object"},
      {"/outcome/performance/speedup_compile/low", 1.0,
       "outcome.performance.speedup_compile: lacks the field \"median\""},
      {"/outcome/performance/kernels/0/grid", Json::array({1}),
       "outcome.performance.kernels[0].grid: not an array of 3"},
      {"/outcome/performance/timing/clocks/throttling", "thermal",
       "outcome.performance.timing.clocks.throttling: not an array"},
      {"/outcome/performance/floor/bytes", 0.5, "outcome.performance.floor.bytes: not an integer"},
  };
  for (const Spoiled& row : kTable) {
    Json json = sound;
    json[Json::json_pointer(row.pointer)] = row.value;
    EXPECT_EQ(message_of(json), row.message);
  }
}

TEST(VerdictJson, RefusesAVerdictThatLacksAnyField) {
  const Json sound = Json::parse(to_json(generate_verdict(3, 7), Indent::kCompact));
  for (const auto& [key, ignored] : sound.items()) {
    Json json = sound;
    json.erase(key);
    EXPECT_NE(message_of(json), "") << key;
  }
}

TEST(VerdictJson, RefusesWhatIsNotJson) {
  EXPECT_EQ(verdict_from_json("").error().message, "verdict: not JSON at byte 1");
  EXPECT_EQ(verdict_from_json("{\"a\":").error().message, "verdict: not JSON at byte 6");
  EXPECT_EQ(verdict_from_json("[]").error().message, "verdict: not an object");
  EXPECT_FALSE(verdict_from_json("1e999").has_value());
  EXPECT_FALSE(verdict_from_json("\"\xff\"").has_value());
  EXPECT_EQ(verdict_from_json("{}").error().code, ErrorCode::kInvalidInput);
}

TEST(VerdictJson, AcceptsDeepNestingUpToALimit) {
  const std::string deep(1 << 20, '[');
  EXPECT_FALSE(verdict_from_json(deep).has_value());
  const std::string closed = "{\"schema\":" + deep + std::string(deep.size(), ']') + "}";
  EXPECT_FALSE(verdict_from_json(closed).has_value());
  EXPECT_EQ(verdict_from_json(std::string(kVerdictBytesMax + 1, ' ')).error().message,
            "verdict: more than 16777216 bytes");
}

// Checks real output against the published schema with an independent implementation.
TEST(VerdictJson, MatchesThePublishedSchemaExactly) {
  const char* chosen = std::getenv("MC_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import jsonschema' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << python << " has no jsonschema: pip install jsonschema";
  }
  auto directory = TemporaryDirectory::create("verdict-schema");
  ASSERT_TRUE(directory.has_value());
  std::string lines;
  for (size_t outcome = 0; outcome < kNumOutcomes; ++outcome) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      lines += to_json(generate_verdict(seed, outcome), Indent::kCompact) + '\n';
    }
  }
  Verdict infinite;
  infinite.outcome = TimedOut{"forward", std::numeric_limits<double>::infinity(), {}};
  lines += to_json(infinite, Indent::kCompact) + '\n';
  const std::string path = directory->path() / "verdicts.jsonl";
  ASSERT_TRUE(write_file_atomically(path, lines).has_value());
  const std::string source = MC_SOURCE_DIR;
  const std::string command = python + " '" + source +
                              "/src/task/testing/check_verdict_schema.py' '" + source +
                              "/docs/verdict.schema.json' '" + path + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace mc::task
