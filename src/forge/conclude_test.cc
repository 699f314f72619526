// SPDX-License-Identifier: Apache-2.0
#include "forge/conclude.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "execute/measurement.h"
#include "worker/fakes/fake_worker.h"

namespace mc::forge {
namespace {

using Json = nlohmann::json;
using worker::Reaction;

// One candidate process as it was seen: how each stage and each call ended, what the emulator
// reported meanwhile (lines without their first brace), and the judge's answers.
struct Step {
  Reaction reaction;
  std::vector<std::string> report;
};
struct Seen {
  worker::JudgeBeginAnswer begun;
  std::vector<Step> starts;  // The load, then a build for each shape.
  std::vector<Step> calls;   // One for each trial.
  std::vector<worker::JudgeTrialAnswer> given;
  std::vector<worker::JudgeCheckAnswer> checks;
  execute::RunPolicy policy{"musacoder", {"empty"}, 1};
};

constexpr size_t kTrials = 5;

std::string record(size_t number, const std::map<std::string, std::string>& changes = {}) {
  std::map<std::string, std::string> members{
      {"launches", "1"}, {"digest", "\"0\""},     {"kernel", "16"},
      {"fill", "0"},     {"given", "0"},          {"host", "0"},
      {"nowhere", "0"},  {"reads_given", "true"}, {"unknown_reads", "0"}};
  for (const auto& [name, value] : changes) members[name] = value;
  std::string line = R"("call":)" + std::to_string(number);
  for (const auto& [name, value] : members) line.append(",\"" + name + "\":").append(value);
  return line + "}";
}

std::string finding(const std::string& kind) {
  return R"("kind":")" + kind + R"(","kernel":"k","block":[0,0,0],"thread":[0,0,0],"detail":"d"})";
}

std::string ran(const worker::CandidateRunAnswer& run = {}) { return run.to_json(); }

// Right in all five trials: three at the main shape, one at each of two others.
Seen right() {
  Seen seen;
  seen.begun.plan.needs_general = true;
  for (const char* label : {"reduced", "ragged", "small"}) {
    seen.begun.plan.shapes.push_back({.label = label});
    seen.starts.push_back({worker::CandidateBuildAnswer().to_json(), {}});
  }
  seen.starts.insert(seen.starts.begin(), {worker::CandidateLoadAnswer().to_json(), {}});
  for (size_t i = 0; i < kTrials; ++i) {
    const auto index = static_cast<int64_t>(i);
    seen.begun.plan.trials.push_back({index, std::max<int64_t>(0, index - 2), "native"});
    seen.calls.push_back({ran(), {record(i + 1)}});
    seen.given.push_back({.digest = std::to_string(i)});
    seen.checks.push_back({.passed = true});
  }
  return seen;
}

task::SourceLocation nowhere(std::string_view, uint64_t) { return {}; }

// ---- As the bulk verifier reports it

Json reply_of(const Reaction& reaction) {
  if (const auto* text = std::get_if<std::string>(&reaction)) return Json::parse(*text);
  const auto& refusal = std::get<worker::ErrorReply>(reaction);
  const Json error{{"kind", refusal.kind},
                   {"stage", refusal.stage},
                   {"type", refusal.exception.type},
                   {"message", refusal.exception.message}};
  return {{"ok", false}, {"error", error}};
}

Json run_of(const Seen& seen) {
  Json run{{"events", Json::array()}, {"died", nullptr}, {"report", Json::array()}};
  const auto lines_of = [](const Step& stage) {
    Json lines = Json::array();
    for (const std::string& line : stage.report) lines.push_back("{" + line);
    return lines;
  };
  const size_t num_starts = seen.starts.size();
  for (size_t i = 0; i < num_starts + kTrials; ++i) {
    const Step& stage = i < num_starts ? seen.starts[i] : seen.calls[i - num_starts];
    const auto* death = std::get_if<execute::ProcessEnd>(&stage.reaction);
    if (death != nullptr || std::holds_alternative<worker::Hangs>(stage.reaction)) {
      const auto end = death == nullptr ? execute::ProcessEnd{9, 0} : *death;
      run["died"] = {
          {"is_late", death == nullptr}, {"signal", end.signal}, {"exit_code", end.exit_code}};
      run["report"] = lines_of(stage);
      return run;
    }
    Json event{{"at", i == 0 ? "load" : "init"}, {"reply", reply_of(stage.reaction)}};
    if (i >= num_starts) {
      event["at"] = "forward";
      event["index"] = i - num_starts;
      event["report"] = lines_of(stage);
      event["check"] = Json::parse(seen.checks[i - num_starts].to_json());
    }
    run["events"].push_back(event);
    if (i < num_starts && !event["reply"]["ok"].get<bool>()) {
      run["report"] = lines_of(stage);
      return run;
    }
  }
  return run;
}

Result<task::Outcome> in_bulk(const Seen& seen) {
  Json answer{{"begun", Json::parse(seen.begun.to_json())}, {"given", Json::array()}};
  for (const auto& given : seen.given) answer["given"].push_back(Json::parse(given.to_json()));
  return conclude(answer.dump(), run_of(seen).dump(), seen.policy, nowhere);
}

// ---- As MooreEval sees it

Result<task::Outcome> by_moore_eval(const Seen& seen) {
  worker::FakeWorker judges, candidates;
  size_t num_started = 0, num_called = 0;
  judges.say<worker::JudgeInitQuestion>({});
  judges.on<worker::JudgeTrialQuestion>(
      [&](const auto& asked, const Fd&) { return seen.given.at(asked.index); });
  judges.on<worker::JudgeCheckQuestion>(
      [&](const auto& asked, const Fd&) { return seen.checks.at(asked.index); });
  const auto react = [&](const Step& stage) {
    for (const std::string& line : stage.report) candidates.report(line);
    return stage.reaction;
  };
  const auto start = [&](const auto&, const Fd&) { return react(seen.starts.at(num_started++)); };
  candidates.on<worker::CandidateLoadQuestion>(start);
  candidates.on<worker::CandidateBuildQuestion>(start);
  candidates.on<worker::CandidateRunQuestion>(
      [&](const auto&, const Fd&) { return react(seen.calls.at(num_called++)); });
  execute::Judge judge(judges.session(), execute::plan_of(seen.begun.plan));
  const execute::StageLimits limits{.load_s = 20, .forward_s = 20};
  const execute::Program program{"", {}, nowhere, /*is_emulated=*/true};
  auto measured = execute::Measurement(limits, program, judge, seen.policy, 5, candidates.session())
                      .run([](execute::Session&) {});
  if (!measured) return measured.error();
  return std::move(measured->outcome);
}

std::string name_of(const Result<task::Outcome>& outcome) {
  return outcome ? task::outcome_name(*outcome) : outcome.error().message;
}

// Something that a candidate may do at some place; several may come together.
void spoil(Seen& seen, std::mt19937_64& random) {
  const auto draw = [&](size_t num) { return static_cast<size_t>(random() % num); };
  const size_t at = draw(kTrials);
  Step& call = seen.calls[at];
  const auto exception = [](const char* kind) {
    return worker::ErrorReply{kind, "", {"ValueError", "no", {}, {}}};
  };
  const std::vector<Reaction> ends = {exception("exception"),
                                      exception("oom"),
                                      exception("operator"),
                                      exception("link"),
                                      Reaction(worker::Hangs()),
                                      execute::ProcessEnd{11, 0},
                                      Reaction(execute::ProcessEnd{0, 3})};
  const std::vector<const char*> kinds = {
      "shared_race",  "out_of_bounds_read", "device_assert",       "unsupported",
      "host_compute", "forged_report",      "uninitialised_shared"};
  const std::vector<std::pair<const char*, const char*>> origins = {
      {"launches", "0"}, {"kernel", "0"}, {"host", "4"},
      {"nowhere", "4"},  {"fill", "16"},  {"unknown_reads", "4"}};
  switch (draw(12)) {
    case 0:
      seen.starts[draw(seen.starts.size())].reaction = ends[draw(ends.size())];
      break;
    case 1:
    case 2:
      call.reaction = ends[draw(ends.size())];
      break;
    case 3:
    case 4:
      call.report.insert(call.report.begin(), finding(kinds[draw(kinds.size())]));
      break;
    case 5: {
      const auto& [name, value] = origins[draw(origins.size())];
      call.report.back() = record(at + 1, {{name, value}, {"kernel", draw(2) == 0 ? "0" : "16"}});
      break;
    }
    case 6:
      call.report.push_back(record(at + 1 + draw(2)));
      break;
    case 7:
      call.reaction = ran({.aten = {{draw(2) == 0 ? "aten::relu" : "aten::empty", 1}}});
      break;
    case 8:
      call.reaction = ran({.sticky = "an illegal memory access was encountered"});
      break;
    case 9:
      seen.checks[at].inputs_mutated = "input[0]";
      break;
    case 10:
      seen.given[at].returns_inputs = true;
      if (draw(4) == 0) seen.policy.operators = {"*"};
      break;
    default:
      seen.checks[at] = {.passed = false, .checks = {{.path = "output", .problem = "value"}}};
      if (draw(4) == 0) {
        seen.begun.plan.grade.grade = "trivial";
        call.report.back() = record(at + 1, {{"reads_given", "false"}});
      }
  }
}

TEST(Conclude, GivesTheOutcomeOfMooreEvalWhateverACandidateDoes) {
  std::map<std::string, int> kinds;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    std::mt19937_64 random(seed);
    Seen seen = right();
    for (size_t i = 0, num = random() % 4; i < num; ++i) spoil(seen, random);
    const auto expected = by_moore_eval(seen), found = in_bulk(seen);
    ASSERT_TRUE(expected.has_value()) << "seed " << seed << ": " << expected.error().message;
    ASSERT_TRUE(found.has_value()) << "seed " << seed << ": " << found.error().message;
    EXPECT_TRUE(*expected == *found)
        << "seed " << seed << ": " << name_of(expected) << " and " << name_of(found);
    ++kinds[name_of(found)];
  }
  for (const char* kind :
       {"pass", "wrong", "illegal", "runtime", "timeout", "oom", "compile", "unsupported"}) {
    EXPECT_GE(kinds[kind], 5) << kind;
  }
}

TEST(Conclude, PassesWhatPassedEveryTrial) { EXPECT_EQ(name_of(in_bulk(right())), "pass"); }

TEST(Conclude, IsSpecialisedWhereOnlyAnotherShapeFailsThoughTheMainOneIsReduced) {
  Seen seen = right();
  seen.checks.back().passed = false;
  const auto outcome = in_bulk(seen);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(std::get<task::Wrong>(*outcome).specialised);
  seen.checks.front().passed = false;
  EXPECT_FALSE(std::get<task::Wrong>(*in_bulk(seen)).specialised);
}

TEST(Conclude, NamesTheStageInWhichTheProcessDied) {
  Seen seen = right();
  seen.starts[2].reaction = execute::ProcessEnd{11, 0};
  EXPECT_EQ(std::get<task::Crashed>(*in_bulk(seen)).stage, "init");
  seen.starts[0].reaction = worker::Hangs();
  EXPECT_EQ(std::get<task::TimedOut>(*in_bulk(seen)).stage, "load");
}

TEST(Conclude, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(name_of(conclude("[]", "[]", {}, nowhere)), ::testing::HasSubstr("not understood"));
}

TEST(Conclude, PassesWhereATaskAsksForItsOwnSizesAlone) {
  Seen seen = right();
  seen.begun.plan.needs_general = false;
  seen.checks.back().passed = false;
  const auto outcome = in_bulk(seen);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(std::get<task::Passed>(*outcome).generality, 0.5);
  seen.calls[3].reaction = execute::ProcessEnd{11, 0};
  const auto died = in_bulk(seen);
  ASSERT_TRUE(died.has_value());
  EXPECT_EQ(std::get<task::Passed>(*died).generality, 0);
  seen.calls[2].reaction = execute::ProcessEnd{11, 0};
  EXPECT_EQ(name_of(in_bulk(seen)), "runtime");
}

}  // namespace
}  // namespace mc::forge
