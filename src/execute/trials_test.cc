// SPDX-License-Identifier: Apache-2.0
#include "execute/trials.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mc::execute {
namespace {

std::string finding(const std::string& kind, const std::string& kernel = "k") {
  return R"({"kind":")" + kind + R"(","kernel":")" + kernel + R"(","detail":"d"})" + "\n";
}

// A reported call; without changes it passes.
struct Reported {
  int number = 1;
  int num_records = 1;
  std::string findings{};
  worker::CandidateRunResponse run{};
  worker::JudgeCheckResponse check{.passed = true};
  int launches = 1;
  int from_host = 0;
  bool reads_given = true;

  std::string report() const {
    std::string text = findings;
    for (int i = 0; i < num_records; ++i) {
      text += R"({"call":)" + std::to_string(number + i) + R"(,"launches":)" +
              std::to_string(launches) + R"(,"kernel":16,"fill":0,"given":0,"host":)" +
              std::to_string(from_host) + R"(,"nowhere":0,"reads_given":)" +
              (reads_given ? "true" : "false") + R"(,"unknown_reads":0})" + "\n";
    }
    return text;
  }
  // The response, with the launches that the device process counts.
  worker::CandidateRunResponse result() const {
    worker::CandidateRunResponse response = run;
    if (!response.launches) response.launches = launches;
    return response;
  }
};

class TrialsTest : public testing::Test {
 protected:
  TrialsTest() {
    plan_.shapes = {{"native", {}, {}}, {"ragged", {}, {}}};
    plan_.trials = {{0, 0, "native"}, {1, 1, "native"}};
    plan_.grade.grade = "trivial";
  }

  EarlyOutcome make(const Reported& reported, size_t index = 0) {
    auto call = trials_.begin(plan_.trials[index], {}, reported.report());
    if (EarlyOutcome decided = trials_.admit(call, reported.result()); decided || call.lacking) {
      return decided;
    }
    return trials_.add(std::move(call), reported.result(), reported.check);
  }
  EarlyOutcome fail(const CallResult& result, const std::string& report, size_t index) {
    return trials_.fail(trials_.begin(plan_.trials[index], {}, report), result);
  }

  JudgePlan plan_;
  RunPolicy policy_{"test", {"empty"}, 1};
  StageLimits limits_;
  Program program_{
      "", {}, [](std::string_view, uint64_t, std::string_view) { return task::SourceLocation{}; }};
  Trials trials_{plan_, policy_, limits_, program_};
};

std::string name_of(const EarlyOutcome& outcome) {
  if (!outcome) return "none";
  const auto* illegal = std::get_if<task::Illegal>(&*outcome);
  return illegal == nullptr ? task::outcome_name(*outcome) : illegal->findings.at(0).rule;
}

// The call has all faults at first; each step removes the one that decided.
TEST_F(TrialsTest, TheFirstRuleInTheOrderDecides) {
  Reported call{.findings = finding("shared_race"),
                .run = {.aten = {{"aten::relu", 1}}, .sticky = "an illegal memory access"},
                .check = {.passed = false},
                .launches = 0,
                .from_host = 16,
                .reads_given = false};
  struct Step {
    const char* decides;
    std::function<void()> mend;
  };
  const std::vector<Step> steps = {
      {"run.aten", [&] { call.run.aten = {{"aten::empty", 1}}; }},
      {"runtime", [&] { call.run.sticky.clear(); }},
      {"none", [&] { call.check.passed = true; }},
      {"run.own_launch", [&] { call.launches = 1; }},
      {"run.host_output", [&] { call.from_host = 0; }},
      {"run.constant_answer", [&] { call.reads_given = true; }},
      {"none", [] {}},
  };
  for (const Step& step : steps) {
    Trials fresh(plan_, policy_, limits_, program_);
    auto admitted = fresh.begin(plan_.trials[0], {}, call.report());
    EarlyOutcome decided = fresh.admit(admitted, call.result());
    if (!decided) decided = fresh.add(std::move(admitted), call.result(), call.check);
    EXPECT_EQ(name_of(decided), step.decides);
    step.mend();
  }
}

// A device in software reports more than launches: the origin of output values and reads count,
// too.
TEST_F(TrialsTest, TheRecordOfADeviceProcessDecidesToo) {
  Reported call{.launches = 0, .from_host = 16, .reads_given = false};
  EXPECT_EQ(name_of(make(call)), "run.own_launch");
  call.run.launches = 1;
  EXPECT_EQ(name_of(make({.number = 2, .run = call.run, .launches = 0, .from_host = 16})),
            "run.host_output");
  EXPECT_EQ(name_of(make({.number = 3, .run = call.run, .launches = 0, .reads_given = false})),
            "run.constant_answer");
  EXPECT_EQ(make({.number = 4, .run = call.run, .launches = 0}), std::nullopt);
  EXPECT_EQ(make({.num_records = 0, .run = call.run}), std::nullopt) << "a GPU has no record";
}

TEST_F(TrialsTest, AFindingFailsAllTrialsThatCount) {
  plan_.needs_general = true;
  EXPECT_EQ(make({.number = 1}), std::nullopt);
  EXPECT_EQ(make({.number = 2, .findings = finding("shared_race")}, 1), std::nullopt);
  EXPECT_EQ(std::get<task::Wrong>(trials_.outcome()).q, 0);
}

TEST_F(TrialsTest, AFailedConfigurationFailsItsTrialAndIsNamed) {
  const Reported right{.num_records = 0};
  policy_.operators = {"*"};
  policy_.own_launches_min = 0;
  for (size_t i = 0; i < plan_.trials.size(); ++i) EXPECT_EQ(make(right, i), std::nullopt);
  trials_.repeat(1, 8);
  EXPECT_EQ(make(right), std::nullopt);
  EXPECT_EQ(trials_.all().size(), plan_.trials.size());
  EXPECT_FALSE(trials_.has_failed());
  trials_.repeat(5, 8);
  Reported wrong = right;
  wrong.check = {.passed = false, .checks = {{.path = "output", .problem = "value"}}};
  wrong.run.triton = worker::Triton{8, "BLOCK: 64", 0};
  EXPECT_EQ(make(wrong), std::nullopt);
  EXPECT_TRUE(trials_.all()[1].passed);
  const task::Trial& failed = trials_.all()[0];
  EXPECT_FALSE(failed.passed);
  ASSERT_EQ(failed.findings.size(), 1u);
  EXPECT_EQ(failed.findings[0].kind, "configuration");
  EXPECT_NE(failed.findings[0].detail.find("5 of 8"), std::string::npos);
  EXPECT_NE(failed.findings[0].detail.find("(BLOCK: 64)"), std::string::npos);
  EXPECT_STREQ(task::outcome_name(trials_.outcome()), "wrong");
}

TEST_F(TrialsTest, ACrashOfAConfigurationNamesIt) {
  const Reported right{.num_records = 0};
  policy_.operators = {"*"};
  policy_.own_launches_min = 0;
  for (size_t i = 0; i < plan_.trials.size(); ++i) EXPECT_EQ(make(right, i), std::nullopt);
  trials_.repeat(2, 3);
  const task::Outcome ended = trials_.with_trials(task::Crashed{"forward", {}, 11, 0, {}, {}});
  const auto& findings = std::get<task::Crashed>(ended).findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "configuration");
}

TEST_F(TrialsTest, AnExceptionDecidesAtTheMainShapeOrBesideAFatalFinding) {
  const ErrorReply refusal{"exception", "", {"ValueError", "no", {"candidate", 3, 0, ""}, {}}};
  EXPECT_EQ(name_of(fail(refusal, "", 0)), "runtime");
  EXPECT_EQ(name_of(fail(refusal, finding("out_of_bounds_read"), 1)), "runtime");
  EXPECT_EQ(name_of(fail(ProcessEnd{11, 0}, "", 1)), "runtime");
  EXPECT_EQ(name_of(fail(refusal, finding("shared_race"), 1)), "none");
  EXPECT_EQ(trials_.all().at(0).checks.at(0).detail, "ValueError: no (candidate:3)");
}

// The device reports a refused launch in the trial that met it first.
TEST_F(TrialsTest, ARefusedLaunchIsAFindingAndNotAMissingLaunch) {
  EXPECT_EQ(make({.number = 1, .findings = finding("launch_error"), .launches = 0}), std::nullopt);
  EXPECT_EQ(make({.number = 2, .launches = 0}), std::nullopt);
  EXPECT_EQ(std::get<task::Wrong>(trials_.outcome()).q, 0);
}

TEST_F(TrialsTest, AMissingLaunchNamesTheModeThatWasJudged) {
  plan_.mode = "train";
  const auto message = [&] {
    return std::get<task::Illegal>(*make({.launches = 0})).findings.at(0).message;
  };
  EXPECT_THAT(message(), ::testing::HasSubstr("in training mode"));
  plan_.mode = "eval";
  EXPECT_THAT(message(), ::testing::HasSubstr("in eval mode"));
}

TEST_F(TrialsTest, IsUnsupportedOnlyWhereAllOtherTrialsPassed) {
  plan_.needs_general = true;
  const Reported lacking{.number = 1, .findings = finding("unsupported"), .check = {}};
  EXPECT_EQ(make(lacking), std::nullopt);
  EXPECT_EQ(make({.number = 2}, 1), std::nullopt);
  EXPECT_EQ(task::outcome_name(trials_.outcome()), std::string("unsupported"));

  Trials wrong(plan_, policy_, limits_, program_);
  auto call = wrong.begin(plan_.trials[0], {}, lacking.report());
  EXPECT_EQ(wrong.admit(call, lacking.run), std::nullopt);
  EXPECT_TRUE(call.lacking);
  EXPECT_FALSE(wrong.has_failed());
  const Reported other{.number = 2, .check = {.passed = false}};
  auto next = wrong.begin(plan_.trials[1], {}, other.report());
  EXPECT_EQ(wrong.admit(next, other.run), std::nullopt);
  EXPECT_EQ(wrong.add(std::move(next), other.result(), other.check), std::nullopt);
  EXPECT_TRUE(wrong.has_failed());
  EXPECT_EQ(std::get<task::Wrong>(wrong.outcome()).q, 0);
}

TEST_F(TrialsTest, AFaultBeforeAnUnsupportedFeatureDecidesAndALaterOneDoesNot) {
  const std::string race = finding("shared_race"), lack = finding("unsupported");
  plan_.trials.pop_back();
  for (const bool is_before : {true, false}) {
    Trials trials(plan_, policy_, limits_, program_);
    const Reported call{.findings = is_before ? race + lack : lack + race};
    auto begun = trials.begin(plan_.trials[0], {}, call.report());
    EXPECT_EQ(trials.admit(begun, call.run), std::nullopt);
    if (!begun.lacking) {
      EXPECT_EQ(trials.add(std::move(begun), call.result(), call.check), std::nullopt);
    }
    EXPECT_EQ(task::outcome_name(trials.outcome()),
              std::string(is_before ? "wrong" : "unsupported"));
  }
}

// A kernel that met a lack did not end as it should; a call without a library may be right.
TEST_F(TrialsTest, ALibraryThatTheDeviceLacksExcusesWrongValuesAlone) {
  plan_.trials.pop_back();
  const std::string lack = finding("unsupported", "");
  struct Lack {
    std::string findings;
    bool is_right;
    const char* outcome;
  };
  const std::vector<Lack> cases = {
      {lack, true, "pass"},
      {lack, false, "unsupported"},
      {lack + finding("uninitialised_global"), false, "unsupported"},
      {lack + finding("shared_race"), true, "wrong"},
      {lack + finding("unsupported") + finding("shared_race"), true, "unsupported"},
  };
  for (const Lack& each : cases) {
    Trials trials(plan_, policy_, limits_, program_);
    const Reported call{.findings = each.findings, .check = {.passed = each.is_right}};
    auto begun = trials.begin(plan_.trials[0], {}, call.report());
    EXPECT_EQ(trials.admit(begun, call.result()), std::nullopt);
    if (!begun.lacking) {
      EXPECT_EQ(trials.add(std::move(begun), call.result(), call.check), std::nullopt);
    }
    EXPECT_EQ(task::outcome_name(trials.outcome()), std::string(each.outcome)) << each.findings;
  }
}

TEST_F(TrialsTest, AFaultOfACallWithoutALibraryHasItsExcuse) {
  plan_.trials.pop_back();
  const Reported call{.findings = finding("unsupported", ""), .run = {.sticky = "a fault"}};
  auto begun = trials_.begin(plan_.trials[0], {}, call.report());
  EXPECT_EQ(trials_.admit(begun, call.result()), std::nullopt);
  EXPECT_TRUE(begun.lacking) << "nothing is left to compare";
  EXPECT_EQ(task::outcome_name(trials_.outcome()), std::string("unsupported"));
}

TEST_F(TrialsTest, SizesThatDoNotCountMayBeLeftToPyTorch) {
  EXPECT_EQ(make({.number = 1}), std::nullopt);
  EXPECT_EQ(make({.number = 2, .launches = 0}, 1), std::nullopt);
  const auto passed = std::get<task::Passed>(trials_.outcome());
  EXPECT_EQ(passed.generality, 0);
  EXPECT_EQ(passed.trials.at(1).checks.at(0).problem, "illegal");

  plan_.needs_general = true;
  Trials general(plan_, policy_, limits_, program_);
  const Reported idle{.number = 1, .launches = 0};
  auto begun = general.begin(plan_.trials[1], {}, idle.report());
  EXPECT_EQ(general.admit(begun, idle.result()), std::nullopt);
  EXPECT_EQ(name_of(general.add(std::move(begun), idle.result(), idle.check)), "run.own_launch");
}

TEST_F(TrialsTest, CopiesOfPyTorchsMayNotDoAllThatATaskAsksFor) {
  for (const bool only_moves : {false, true}) {
    plan_.only_moves = only_moves;
    Trials trials(plan_, policy_, limits_, program_);
    const Reported call{.run = {.moved_percent = 100}};
    auto begun = trials.begin(plan_.trials[0], {}, call.report());
    EXPECT_EQ(trials.admit(begun, call.run), std::nullopt);
    EXPECT_EQ(name_of(trials.add(std::move(begun), call.result(), call.check)),
              only_moves ? "run.torch_moves" : "none");
  }
}

TEST_F(TrialsTest, AForbiddenActDecidesBeforeAnUnsupportedFeature) {
  const std::string lack = finding("unsupported");
  EXPECT_EQ(name_of(make({.findings = lack, .run = {.aten = {{"aten::relu", 1}}}})), "run.aten");
  const ErrorReply refusal{"operator", "", {"", "aten::mm is not available", {}, {}}};
  EXPECT_EQ(name_of(fail(refusal, lack, 0)), "run.aten");
}

TEST_F(TrialsTest, AnEarlierWrongTrialDecidesBeforeAnUnsupportedCrash) {
  plan_.needs_general = true;
  EXPECT_EQ(make({.number = 1, .check = {.passed = false}}), std::nullopt);
  const task::Outcome ended = trials_.with_trials(task::Unsupported{{{"r", "m", {}}}});
  EXPECT_EQ(std::get<task::Wrong>(ended).trials.size(), 2u);
}

}  // namespace
}  // namespace mc::execute
