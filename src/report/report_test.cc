// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/utf8.h"
#include "task/testing/verdict_generator.h"
#include "task/text.h"
#include "task/verdict_json.h"

namespace mc::report {
namespace {

using task::Outcome;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Judged judged_of(const std::string& task, const Outcome& outcome,
                 std::optional<double> reward = {}) {
  Judged out;
  out.verdict.task = task;
  out.verdict.candidate = task + "#0";
  out.verdict.outcome = outcome;
  out.reward = reward;
  return out;
}

std::string phrase_of(const Outcome& outcome) {
  return phrase(judged_of("t", outcome).verdict, 200);
}

task::Wrong wrong_kernel() {
  task::OutputCheck check;
  check.path = "output";
  check.problem = "value";
  check.detail = "12 of 40 elements";
  task::Trial bad;
  bad.shape = "ragged";
  bad.distribution = "native";
  bad.checks = {check};
  task::Trial good;
  good.passed = true;
  return {0.5, false, {good, bad}};
}

task::Passed timed(const task::Estimate& speedup_eager,
                   std::optional<task::Estimate> speedup_compile = {}) {
  task::Performance performance;
  performance.time_us = {12.25, 12, 12.5};
  performance.speedup_eager = speedup_eager;
  performance.speedup_compile = speedup_compile;
  return {{}, performance};
}

TEST(Phrase, HasLocationAndReasonForEveryOutcome) {
  const task::SourceLocation location{"cuda_sources[0]", 12, 3, "x = y"};
  const task::KernelFinding finding{"out_of_bounds_write", "add", {}, {}, "4 bytes past", location};
  const struct {
    Outcome outcome;
    std::string phrase;
  } kTable[] = {
      {task::Unextractable{"no_code", "the answer holds no fence", {}},
       "no_code: the answer holds no fence"},
      {task::Illegal{"static", {{"python.call", "calls torch.softmax", location}}},
       "python.call: cuda_sources[0]:12: calls torch.softmax"},
      {task::Illegal{"run", {{"aten", "aten::mm", {}}, {"aten", "aten::add", {}}}},
       "aten (+1 more): aten::mm"},
      {task::CompileFailed{{{"warning", "unused", {}}, {"error", "expected ';'", location}}},
       "cuda_sources[0]:12: expected ';'"},
      {task::CompileFailed{}, "the compiler failed"},
      {task::Crashed{"load", task::Exception{"ImportError", "no\nmodule", {}, {}}, 0, 1, {}, {}},
       "load: ImportError: no module"},
      {task::Crashed{"forward", {}, 11, 0, {}, {}}, "forward: SIGSEGV"},
      {task::Crashed{"forward", {}, 0, 3, {}, {}}, "forward: ended by itself with exit code 3"},
      {task::Crashed{"forward", {}, 0, 0, {finding}, {}},
       "forward: out_of_bounds_write at cuda_sources[0]:12 in add: 4 bytes past"},
      {task::TimedOut{"forward", 10, {}}, "forward took more than 10 s"},
      {task::TimedOut{"all_calls", 120, {}}, "all of its calls took more than 120 s"},
      {task::OutOfMemory{"init", int64_t{4} << 30}, "init needs more than 4096 MiB"},
      {wrong_kernel(), "output value: 12 of 40 elements; 1 of 2 trials fail, first ragged/native"},
      {task::Passed{}, ""},
      {task::Passed{{}, {}, 0.5}, "generality 0.50"},
      {timed({2, 1.9, 2.1}), "12.2 us, 2.00x eager [1.90, 2.10]"},
      {timed({2, 1.9, 2.1}, task::Estimate{0.8, 0.75, 0.875}),
       "12.2 us, 2.00x eager [1.90, 2.10], 0.80x torch.compile [0.75, 0.88]"},
      {timed({1.05, 0.98, 1.09}, task::Estimate{1.2, 1.1, 1.3}),
       "12.2 us, 1.05x eager [0.98, 1.09] uncertain, 1.20x torch.compile [1.10, 1.30] uncertain"},
      {task::Unsupported{{{"cuda.inline_ptx", "asm", location}}},
       "cuda.inline_ptx: cuda_sources[0]:12: asm"},
      {task::Infra{"fork failed"}, "fork failed"},
  };
  for (const auto& row : kTable) EXPECT_EQ(phrase_of(row.outcome), row.phrase);
}

TEST(Phrase, NamesWhatAPassDidNotTry) {
  task::Verdict verdict;
  verdict.outcome = task::Passed{};
  verdict.not_tried = {"its own sizes: dim 16384 (2048 was tried)"};
  EXPECT_EQ(phrase(verdict, 200), "not tried: its own sizes: dim 16384 (2048 was tried)");
}

TEST(Phrase, BeginsWithTheFindingThatExplainsWrongValues) {
  const task::SourceLocation location{"candidate", 33, 3, "x = y"};
  task::Wrong wrong = wrong_kernel();
  const task::Trial without = wrong.trials.back();
  wrong.trials.back().findings = {{"shared_race", "row_sum", {}, {}, "no barrier", location}};
  const std::string race = "shared_race at candidate:33 in row_sum: no barrier; ";
  EXPECT_EQ(phrase_of(wrong), race + "1 of 2 trials fail, first ragged/native");
  wrong.trials.insert(wrong.trials.begin(), without);  // A trial that fails only by its values.
  EXPECT_EQ(phrase_of(wrong), race + "2 of 3 trials fail, first ragged/native");
}

TEST(Table, ShowsTheRaceAndItsLineWhereThereIsLittleRoom) {
  task::Wrong wrong = wrong_kernel();
  const task::SourceLocation location{"cuda_sources[0]", 112, 3, "x = y"};
  wrong.trials.back().findings = {
      {"shared_race", "row_sum_kernel", {}, {}, "no barrier", location}};
  const Judged judged = judged_of("reduction/row_sum", wrong, -1.0);
  EXPECT_THAT(table(std::vector{judged}, {.columns_max = 80}),
              HasSubstr("  shared_race at cuda_sources[0]:112 "));
}

TEST(Phrase, IsOnePlainBoundedLineForAnyVerdict) {
  for (size_t outcome = 0; outcome < std::variant_size_v<Outcome>; ++outcome) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const std::string text = phrase(task::generate_verdict(seed, outcome), 60);
      SCOPED_TRACE(testing::Message() << "outcome " << outcome << ", seed " << seed);
      EXPECT_LE(text.size(), 60U);
      EXPECT_EQ(text, task::plain_line(text, 60));
      EXPECT_EQ(first_invalid_utf8(text), text.size());
    }
  }
}

TEST(Table, ShowsOneLineAVerdict) {
  std::vector<Judged> judged = {judged_of("loss/mse", task::Passed{}, 1.0),
                                judged_of("scan/cumsum_rows", wrong_kernel(), -0.25),
                                judged_of("loss/huber", task::Infra{"fork failed"})};
  judged[0].seconds = 1.25;
  EXPECT_EQ(table(judged, {.columns_max = 100}),
            "task              candidate           outcome     q  reward  seconds  where and why\n"
            "loss/mse          loss/mse#0          pass     1.00    1.00      1.2\n"
            "scan/cumsum_rows  scan/cumsum_rows#0  wrong    0.50   -0.25      0.0  "
            "output value: 12 of 40 elements; 1 of...\n"
            "loss/huber        loss/huber#0        infra       -       -      0.0  fork failed\n");
}

TEST(Table, ColoursOnlyTheOutcomeAndOnlyOnRequest) {
  const std::vector<Judged> judged = {judged_of("a", task::Passed{}, 1.0),
                                      judged_of("b", wrong_kernel(), -1.0)};
  const std::string text = table(judged, {.colour = Colour::kOutcomes});
  EXPECT_THAT(text, HasSubstr("  \x1b[32mpass\x1b[0m     1.00"));
  EXPECT_THAT(text, HasSubstr("  \x1b[31mwrong\x1b[0m    0.50"));
  EXPECT_EQ(std::ranges::count(text, '\x1b'), 4);
}

TEST(Table, ShowsTheEndOfALongName) {
  const std::string text =
      table(std::vector{judged_of(std::string(80, 'x') + "/row_sum", task::Passed{})}, {});
  EXPECT_THAT(text, HasSubstr("..." + std::string(23, 'x') + "/row_sum#0"));
}

TEST(Table, HasOneLineForEachVerdictOfAnyContent) {
  std::vector<Judged> judged;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    judged.push_back({task::generate_verdict(seed, seed % std::variant_size_v<Outcome>), {}, 0});
  }
  const std::string text = table(judged, {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 201);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Summary, CountsEachOutcome) {
  const std::vector<Judged> judged = {judged_of("a", task::Passed{}, 1.0),
                                      judged_of("a", wrong_kernel(), -0.25),
                                      judged_of("b", task::Infra{}, std::nullopt)};
  EXPECT_EQ(summary(judged),
            "3 candidates: 1 wrong, 1 pass, 1 infra; correct 50.0 % of 2 scored; "
            "mean reward 0.38\n");
  EXPECT_EQ(summary({}), "0 candidates: \n");
}

TEST(Summary, HasTheGeometricMeansOfTheSpeedUpsThatWereMeasured) {
  std::vector<Judged> judged = {judged_of("a", task::Passed{}), judged_of("a", timed({2, 1, 4})),
                                judged_of("b", timed({8, 4, 16}, task::Estimate{1.5, 1.25, 2}))};
  EXPECT_THAT(summary(judged),
              HasSubstr("\n2 timed: in the geometric mean 4.00x eager [2.00, 8.00]; "
                        "1 of them 1.50x torch.compile [1.25, 2.00]\n"));
  judged.pop_back();
  EXPECT_THAT(summary(judged),
              EndsWith("\n1 timed: in the geometric mean 2.00x eager [1.00, 4.00]\n"));
}

TEST(Summary, LeavesOutSpeedUpsWithoutAGeometricMean) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const task::Estimate& speedup :
       {task::Estimate{2, 0, 4}, {2, 1, kInfinity}, {std::nan(""), 1, 4}, {-1, -2, 3}}) {
    EXPECT_THAT(summary(std::vector{judged_of("a", timed(speedup))}), Not(HasSubstr("timed")));
  }
}

TEST(Summary, SumsTheWaitsOfCandidatesAndNamesTheRemedy) {
  std::vector<Judged> judged = {judged_of("a", task::Passed{}), judged_of("b", task::Passed{})};
  judged[0].verdict.telemetry.stages = {{"measure", 9000}, {"wait.memory", 3000}};
  judged[1].verdict.telemetry.stages = {
      {"wait.memory", 4000}, {"wait.turn", 900}, {"time.wait", 1200}, {"wait.judge", 10}};
  EXPECT_THAT(summary(judged),
              HasSubstr("\ncandidates waited 7 s for the device's memory, 2 s for a turn on the "
                        "device; against the longest wait: fewer --jobs\n"));
  judged[0].verdict.telemetry.stages = {{"wait.race_check", 2000}};
  judged[1].verdict.telemetry.stages.clear();
  EXPECT_THAT(summary(judged), HasSubstr("\ncandidates waited 2 s for the race check; against the "
                                         "longest wait: fewer --jobs, or --race-check off\n"));
  judged[0].verdict.telemetry.stages.clear();
  EXPECT_EQ(summary(judged).find("waited"), std::string::npos);
}

TEST(Summary, NamesEachMissingProtectionOnce) {
  std::vector<Judged> judged(3);
  judged[0].verdict.telemetry.protections_off = {"seccomp", "uts_namespace"};
  judged[2].verdict.telemetry.protections_off = {"seccomp"};
  EXPECT_THAT(summary(judged),
              HasSubstr("\nsandbox without seccomp, uts_namespace (why: musacoder doctor)\n"));
}

TEST(Summary, NamesTheAuditsThatDidNotRunAndWhy) {
  std::vector<Judged> judged(2);
  judged[0].verdict.telemetry.audits = {{"other_seeds", "clean", ""},
                                        {"memcheck", "not_run", "time\nlimit"}};
  judged[1].verdict.telemetry.audits = {{"racecheck", "not_run", "time\nlimit"}};
  EXPECT_THAT(summary(judged), HasSubstr("\nnot audited by memcheck, racecheck: time"));
  EXPECT_THAT(summary(judged), Not(HasSubstr("other_seeds")));
}

TEST(Summary, NamesWhyRacesWereNotChecked) {
  std::vector<Judged> judged(2);
  judged[0].verdict.telemetry.race_check = {"not_run", "ptx sm_90", "nvcc is missing", 0};
  judged[1].verdict.telemetry.race_check = {"not_needed", "ptx sm_90", "", 0};
  EXPECT_THAT(summary(judged), HasSubstr("\nnot audited by race_check: nvcc is missing\n"));
}

TEST(Summary, ReportsThatTheStrictTierFoundNothing) {
  std::vector<Judged> judged(3);
  EXPECT_THAT(summary(judged), Not(HasSubstr("strict")));
  judged[0].verdict.telemetry.audits = {{"other_seeds", "clean", ""}, {"memcheck", "clean", ""}};
  judged[1].verdict.telemetry.audits = {{"other_seeds", "findings", ""}};
  EXPECT_THAT(summary(judged), HasSubstr("\nstrict: 1 of 2 clean (memcheck, other_seeds)\n"));
}

TEST(JsonLine, ContainsTheVerdictAndTheReward) {
  Judged judged = judged_of("a\n", wrong_kernel(), -0.25);
  judged.feedback = "Result: wrong\n\xff";
  const std::string line = json_line(judged);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["reward"], -0.25);
  EXPECT_EQ(json["feedback"], "Result: wrong\n\xef\xbf\xbd");
  EXPECT_EQ(*task::verdict_from_json(json["verdict"].dump()), judged.verdict);
  EXPECT_EQ(json["provenance"]["program"], "musacoder 0.1.0");
  EXPECT_TRUE(nlohmann::json::parse(json_line(judged_of("a", task::Infra{})))["reward"].is_null());
}

// The definition itself: the share of all k-subsets that contain a passing sample.
double pass_at_k_by_counting(int num, int num_passed, int k) {
  int subsets = 0;
  int with_pass = 0;
  for (int bits = 0; bits < 1 << num; ++bits) {
    if (__builtin_popcount(static_cast<unsigned>(bits)) != k) continue;
    ++subsets;
    with_pass += (bits & ((1 << num_passed) - 1)) != 0;
  }
  return static_cast<double>(with_pass) / subsets;
}

TEST(PassAtK, IsTheShareOfSubsetsThatContainAPass) {
  for (int num = 1; num <= 10; ++num) {
    for (int num_passed = 0; num_passed <= num; ++num_passed) {
      for (int k = 1; k <= num; ++k) {
        EXPECT_NEAR(pass_at_k(num, num_passed, k), pass_at_k_by_counting(num, num_passed, k), 1e-12)
            << num << ' ' << num_passed << ' ' << k;
      }
    }
  }
}

TEST(PassAtK, DoesNotOverflow) {
  EXPECT_NEAR(pass_at_k(100000, 1, 50000), 0.5, 1e-9);
  EXPECT_EQ(pass_at_k(100000, 0, 50000), 0);
}

TEST(Metrics, LeaveOutUnsupportedAndInfra) {
  const std::vector<Judged> judged = {
      judged_of("a", task::Passed{}),      judged_of("a", wrong_kernel()),
      judged_of("a", task::Unsupported{}), judged_of("b", task::Passed{}),
      judged_of("c", task::Infra{}),
  };
  const Metrics got = metrics(judged);
  EXPECT_EQ(got.num_tasks, 2);
  EXPECT_EQ(got.num_scored, 3);
  EXPECT_EQ(got.num_correct, 2);
  EXPECT_DOUBLE_EQ(got.average, 0.75);
}

TEST(Summary, NamesTheDialectAndTheDeviceThatJudged) {
  Judged judged = judged_of("t", task::Passed{});
  EXPECT_THAT(summary({&judged, 1}), Not(HasSubstr("MUSA")));
  judged.verdict.protocol.dialect = task::Dialect::kMusa;
  judged.verdict.protocol.musa_architecture = "mp_31";
  EXPECT_THAT(summary({&judged, 1}),
              HasSubstr("MUSA dialect (mp_31), judged as its port to CUDA on the CPU\n"));
  judged.verdict.backend = task::Backend::kCuda;
  EXPECT_THAT(summary({&judged, 1}), HasSubstr("on an NVIDIA GPU\n"));
}

}  // namespace
}  // namespace mc::report
