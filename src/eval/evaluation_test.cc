// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/hash.h"
#include "eval/fakes/evaluation_fixture.h"
#include "eval/musa_dialect.h"
#include "eval/preparer.h"

namespace mc::eval {
namespace {

using execute::ErrorReply;
using execute::ProcessEnd;
using execute::Role;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kTask = "class Model: pass";
const ErrorReply kOutOfMemory{"oom", "", {"OutOfMemoryError", "no room", {}, {}}};
const ErrorReply kCannot{"exception", "", {"Error", "cannot", {}, {}}};

class EvaluationTest : public testing::Test {
 protected:
  EvaluationTest() { fixture_.compute_device.reset(); }  // The CPU backend, but not emulated.

  task::Verdict run(const task::Candidate& candidate = {"a", "1"}) {
    PreparedCandidate prepared{{"task", "task", kTask}, candidate, {}, source_, "", {}, {}};
    prepared.artifacts.resize(1);
    prepared.artifacts[0].library = kLibrary;
    return evaluate(fixture_.context(), prepared);
  }
  template <typename Outcome>
  Outcome outcome() {
    verdict_ = run();
    const auto* found = std::get_if<Outcome>(&verdict_.outcome);
    if (found == nullptr) {
      const auto* infra = std::get_if<task::Infra>(&verdict_.outcome);
      ADD_FAILURE() << task::outcome_name(verdict_.outcome)
                    << (infra == nullptr ? "" : ": " + infra->message);
    }
    return found == nullptr ? Outcome() : *found;
  }
  int64_t num_spawned(Role role) const { return std::ranges::count(fixture_.spawned, role); }
  bool is_judge_kept() {
    const std::string key = content_hash({kTask, to_string(fixture_.options.correctness)});
    return fixture_.pool.take(key, true).is_open;
  }

  // The worker reacts to consecutive requests with consecutive reactions; the last one repeats.
  template <typename Request>
  static void in_turn(worker::FakeWorker& worker, std::vector<worker::Reaction> reactions) {
    auto num = std::make_shared<size_t>(0);
    worker.on<Request>([reactions, num](const Request&, const Fd&) {
      return reactions[std::min((*num)++, reactions.size() - 1)];
    });
  }
  void plan(std::vector<worker::Shape> shapes, std::vector<worker::Trial> trials) {
    fixture_.judges().say<worker::JudgeBeginRequest>(
        {{.shapes = std::move(shapes), .trials = std::move(trials)}});
  }

  EvaluationFixture fixture_;
  std::string source_ = "class ModelNew: pass";
  task::Verdict verdict_;
};

TEST_F(EvaluationTest, ReturnsInfraForOneCandidateWhereSomethingThrows) {
  // Invalid JSON, which no policy file can contain; the parser throws.
  fixture_.policy.python_json = "{";
  const MusaDialect musa = MusaDialect::create(MC_SOURCE_DIR "/data/musify").value();
  Preparer preparer(fixture_.options, fixture_.policy, musa, fixture_.machine, fixture_.executor);
  const Preparation preparation =
      preparer.prepare({"task", "task", kTask}, {"a", "class ModelNew: pass\n"}, {});
  const auto& verdict = std::get<task::Verdict>(preparation);
  ASSERT_TRUE(std::holds_alternative<task::Infra>(verdict.outcome));
  EXPECT_THAT(std::get<task::Infra>(verdict.outcome).message, HasSubstr("exception: "));
  EXPECT_EQ(verdict.candidate, "a");
  // A plan without shapes, which no judge sends; the access to its first shape throws.
  plan({}, {});
  EXPECT_THAT(outcome<task::Infra>().message, HasSubstr("exception: "));
}

TEST_F(EvaluationTest, GivesEveryCandidateASeedOfItsOwn) {
  const uint64_t seed = run({"a", "1"}).seed;
  EXPECT_EQ(run({"a", "1"}).seed, seed);
  EXPECT_NE(run({"a", "2"}).seed, seed);
  EXPECT_NE(run({"b", "1"}).seed, seed);
  EXPECT_NE(seed, 1u);  // The key's own number appears in no verdict.
  fixture_.key = SeedKey::from(2);
  EXPECT_NE(run({"a", "1"}).seed, seed);
}

TEST_F(EvaluationTest, SendsEachRoleDifferentSeeds) {
  std::vector<uint64_t> told;
  fixture_.judges().on<worker::JudgeBeginRequest>([&](const auto& asked, const Fd&) {
    told.push_back(asked.seed);
    return worker::JudgeBeginResponse{{.shapes = {{}}, .trials = {{}}}};
  });
  fixture_.candidates().on<worker::CandidateLoadRequest>([&](const auto& asked, const Fd&) {
    told.push_back(asked.schedule_seed);
    return worker::CandidateLoadResponse();
  });
  const uint64_t seed = run().seed;
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_EQ(std::set<uint64_t>({told[0], told[1], seed}).size(), 3u);
}

// ---- Judges and candidate processes -------------------------------------------------------------

TEST_F(EvaluationTest, PassesWhatTheJudgePassesAndKeepsTheJudge) {
  const int before = fixture_.candidates().num_alive();
  EXPECT_FALSE(outcome<task::Passed>().performance.has_value());
  EXPECT_THAT(fixture_.spawned, ElementsAre(Role::kJudge, Role::kCandidate));
  EXPECT_EQ(fixture_.candidates().num_alive(), before);
  EXPECT_TRUE(is_judge_kept());
}

TEST_F(EvaluationTest, ReusesTheJudgeForTheNextCandidate) {
  outcome<task::Passed>();
  outcome<task::Passed>();
  EXPECT_THAT(fixture_.spawned, ElementsAre(Role::kJudge, Role::kCandidate, Role::kCandidate));
  const auto& asked = fixture_.judges().asked();
  EXPECT_EQ(std::ranges::count(asked, "open"), 1);
  EXPECT_EQ(std::ranges::count(asked, "begin"), 2);
}

TEST_F(EvaluationTest, SendsAnotherJudgeTheKnownFactsAboutTheTask) {
  std::vector<std::string> told;
  fixture_.judges().on<worker::JudgeOpenRequest>([&](const auto& asked, const Fd&) {
    told.push_back(asked.known);
    return worker::JudgeOpenResponse();
  });
  fixture_.judges().say<worker::JudgeBeginRequest>(
      {{.call_memory = {.inputs = 5}, .shapes = {{}}, .trials = {{}}}, "facts"});
  outcome<task::Passed>();
  fixture_.pool.clear();
  outcome<task::Passed>();
  EXPECT_THAT(told, ElementsAre("", "facts"));
}

TEST_F(EvaluationTest, ReusesAnotherTasksIdleJudgeWhereTooManyAreIdle) {
  std::vector<JudgePool::Lease> lease;
  for (size_t i = 0; i < JudgePool::kOnCpu.idle_max; ++i) {
    lease.push_back(fixture_.pool.take(std::to_string(i), true));
    lease.back().judge = std::make_unique<execute::Judge>(fixture_.judge());
  }
  for (JudgePool::Lease& one : lease) fixture_.pool.give_back("another", std::move(one));
  outcome<task::Passed>();
  EXPECT_EQ(num_spawned(Role::kJudge), 0);
}

TEST_F(EvaluationTest, IsWrongAfterOneAttempt) {
  fixture_.candidates().fail<worker::CandidateRunThereRequest>(ProcessEnd{11, 0});
  EXPECT_EQ(outcome<task::Crashed>().signal, 11);
  EXPECT_EQ(num_spawned(Role::kCandidate), 1);
  EXPECT_TRUE(is_judge_kept());
}

TEST_F(EvaluationTest, IsUnsupportedWhereTheTaskIsTooLarge) {
  fixture_.judges().fail<worker::JudgeOpenRequest>(
      ErrorReply{"unsupported", "", {"Refusal", "too large", {}, {}}});
  EXPECT_EQ(outcome<task::Unsupported>().constructs.at(0).rule, "task.does_not_fit");
  EXPECT_FALSE(is_judge_kept());
  EXPECT_EQ(num_spawned(Role::kCandidate), 0);
}

TEST_F(EvaluationTest, IsUnsupportedAfterOneAttemptWhereTheTaskFails) {
  const ErrorReply fails{"task", "", {"Refusal", "ImportError: no such package", {}, {}}};
  fixture_.judges().fail<worker::JudgeOpenRequest>(fails);
  EXPECT_EQ(outcome<task::Unsupported>().constructs.at(0).rule, "task.fails");
  EXPECT_EQ(num_spawned(Role::kJudge), 1);
  fixture_.judges().fail<worker::JudgeOpenRequest>(ProcessEnd{11, 0});
  EXPECT_EQ(outcome<task::Unsupported>().constructs.at(0).rule, "task.fails");
  EXPECT_EQ(num_spawned(Role::kJudge), 2);
}

TEST_F(EvaluationTest, IsACrashWhereTheDeviceProcessEndsTwice) {
  fixture_.devices().fail<worker::DevicePutRequest>(ProcessEnd{11, 0});
  EXPECT_TRUE(std::holds_alternative<task::Crashed>(run().outcome));
  EXPECT_EQ(num_spawned(Role::kCandidate), 2);
}

TEST_F(EvaluationTest, GivesUpItsTurnBetweenTrialsToACandidateThatIsToBeTimed) {
  plan({{"native", {}, {}}}, {{0, 0, "native"}, {1, 0, "native"}});
  std::atomic<bool> was_alone = false;
  std::jthread other;
  std::vector<bool> seen;
  fixture_.candidates().on<worker::CandidateRunThereRequest>([&](const auto&, const Fd&) {
    seen.push_back(was_alone);
    if (seen.size() == 1) {
      other = std::jthread([&] {
        const auto turn = fixture_.device.turn(Schedule::Use::kExclusive);
        was_alone = true;
      });
      while (!fixture_.device.is_exclusive_wanted()) std::this_thread::yield();
    }
    return worker::CandidateRunThereResponse();
  });
  outcome<task::Passed>();
  EXPECT_THAT(seen, ElementsAre(false, true));
}

TEST_F(EvaluationTest, FindsTheSizesThatACandidateIsMadeFor) {
  source_ = "class ModelNew:\n    N = 128\n";
  plan({{"native", {{"N", 128}}, {}}, {"ragged", {{"N", 127}}, {}}},
       {{0, 0, "native"}, {1, 1, "native"}});
  in_turn<worker::JudgeCheckRequest>(fixture_.judges(),
                                     {worker::JudgeCheckResponse{.passed = true}.to_json(),
                                      worker::JudgeCheckResponse{.passed = false}.to_json()});
  EXPECT_EQ(outcome<task::Passed>().generality, 0);
  ASSERT_THAT(verdict_.telemetry.fixed_sizes, SizeIs(1));
}

// ---- Second attempts ----------------------------------------------------------------------------

TEST_F(EvaluationTest, TriesAgainWithAFreshJudgeWhereOneFails) {
  const std::string begun = worker::JudgeBeginResponse{{.shapes = {{}}, .trials = {{}}}}.to_json();
  in_turn<worker::JudgeBeginRequest>(fixture_.judges(), {ProcessEnd{9, 0}, begun});
  outcome<task::Passed>();
  EXPECT_EQ(num_spawned(Role::kJudge), 2);
}

TEST_F(EvaluationTest, TriesAgainWithAFreshJudgeThoughAnotherIsIdle) {
  const std::string begun = worker::JudgeBeginResponse{{.shapes = {{}}, .trials = {{}}}}.to_json();
  const std::string key = content_hash({kTask, to_string(fixture_.options.correctness)});
  std::vector<JudgePool::Lease> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(fixture_.pool.take(key, true));
    waiting.back().judge = std::make_unique<execute::Judge>(fixture_.judge());
  }
  for (JudgePool::Lease& one : waiting) fixture_.pool.give_back(key, std::move(one));
  in_turn<worker::JudgeBeginRequest>(fixture_.judges(), {ProcessEnd{9, 0}, begun});
  outcome<task::Passed>();
  EXPECT_EQ(num_spawned(Role::kJudge), 1);
}

TEST_F(EvaluationTest, TriesAgainOnlyOnce) {
  fixture_.judges().fail<worker::JudgeTrialRequest>(ProcessEnd{9, 0});
  EXPECT_THAT(outcome<task::Infra>().message, HasSubstr("the judge died of signal 9"));
  EXPECT_EQ(num_spawned(Role::kJudge), 2);
  EXPECT_EQ(num_spawned(Role::kCandidate), 2);
  EXPECT_FALSE(is_judge_kept()) << "it may be broken";
}

TEST_F(EvaluationTest, BlamesTheCandidateWhereASecondJudgeCannotCheckItEither) {
  fixture_.judges().fail<worker::JudgeCheckRequest>(kCannot);
  EXPECT_EQ(outcome<task::Wrong>().trials.at(0).checks.at(0).problem, "malformed");
  EXPECT_EQ(num_spawned(Role::kJudge), 2);
  EXPECT_EQ(num_spawned(Role::kCandidate), 2);
}

TEST_F(EvaluationTest, BlamesNobodyWhereTheSecondJudgeCanCheck) {
  in_turn<worker::JudgeCheckRequest>(
      fixture_.judges(), {kCannot, worker::JudgeCheckResponse{.passed = true}.to_json()});
  outcome<task::Passed>();
}

TEST_F(EvaluationTest, IsOutOfMemoryAtOnceWithoutADevice) {
  fixture_.candidates().fail<worker::CandidateRunThereRequest>(kOutOfMemory);
  outcome<task::OutOfMemory>();
  EXPECT_EQ(num_spawned(Role::kCandidate), 1);
}

TEST_F(EvaluationTest, DoesNotFitWhereTheReferenceHasNoRoomEvenInAllOfTheMemory) {
  fixture_.judges().fail<worker::JudgeOpenRequest>(kOutOfMemory);
  EXPECT_EQ(outcome<task::Unsupported>().constructs.at(0).rule, "task.does_not_fit");
  EXPECT_EQ(num_spawned(Role::kJudge), 2) << "a share of the memory, then all";
}

// ---- On a device --------------------------------------------------------------------------------

class EvaluationOnADevice : public EvaluationTest {
 protected:
  EvaluationOnADevice() { fixture_.compute_device = Device{"GPU-test", 0, {}}; }
  std::vector<std::string> stages() const {
    std::vector<std::string> names;
    for (const task::StageTime& stage : verdict_.telemetry.stages) names.push_back(stage.stage);
    return names;
  }
};

TEST_F(EvaluationOnADevice, TimesTheCandidateThatPassed) {
  const auto passed = outcome<task::Passed>();
  ASSERT_TRUE(passed.performance);
  EXPECT_NEAR(passed.performance->speedup_eager.median, 2, 1e-3);
  EXPECT_EQ(num_spawned(Role::kCandidate), 1);
  EXPECT_THAT(stages(), Contains("time.alone"));
  EXPECT_TRUE(is_judge_kept());
}

TEST_F(EvaluationOnADevice, DoesNotTimeWhereTimingIsDisabled) {
  fixture_.options.timing.enabled = false;
  EXPECT_FALSE(outcome<task::Passed>().performance.has_value());
  EXPECT_THAT(stages(), Not(Contains("time")));
}

TEST_F(EvaluationOnADevice, DoesNotTimeAWrongCandidate) {
  fixture_.judges().say<worker::JudgeCheckRequest>({.passed = false});
  outcome<task::Wrong>();
  EXPECT_EQ(num_spawned(Role::kBaseline), 0);
}

TEST_F(EvaluationOnADevice, TimesAFreshCandidateProcessAfterAStrictRun) {
  fixture_.options.strict = true;
  ASSERT_TRUE(outcome<task::Passed>().performance);
  EXPECT_EQ(num_spawned(Role::kCandidate), 4) << "correctness, two other seeds, timing";
  EXPECT_EQ(num_spawned(Role::kJudge), 3);
  EXPECT_THAT(verdict_.telemetry.audits, SizeIs(4));
}

TEST_F(EvaluationOnADevice, TriesAgainWithExclusiveUseAfterALackOfMemory) {
  in_turn<worker::CandidateRunThereRequest>(
      fixture_.candidates(), {kOutOfMemory, worker::CandidateRunThereResponse().to_json()});
  // The judge of another task holds memory.
  JudgePool::Lease other = fixture_.pool.take("other", true);
  other.judge = std::make_unique<execute::Judge>(fixture_.judge());
  fixture_.pool.give_back("other", std::move(other));
  outcome<task::Passed>();
  EXPECT_EQ(num_spawned(Role::kCandidate), 2);
  EXPECT_FALSE(fixture_.pool.has("other")) << "its memory was given back";
}

TEST_F(EvaluationOnADevice, IsOutOfMemoryWhereItIsSoWithExclusiveUse) {
  fixture_.candidates().fail<worker::CandidateRunThereRequest>(kOutOfMemory);
  outcome<task::OutOfMemory>();
  EXPECT_EQ(num_spawned(Role::kCandidate), 2);
}

TEST_F(EvaluationOnADevice, TriesAgainWithExclusiveUseWhereTheReferenceDidNotFit) {
  in_turn<worker::JudgeOpenRequest>(
      fixture_.judges(), {kOutOfMemory, kOutOfMemory, worker::JudgeOpenResponse().to_json()});
  outcome<task::Passed>();
  EXPECT_EQ(num_spawned(Role::kJudge), 3);
}

TEST_F(EvaluationOnADevice, HoldsTheMemoryWhileItMeasures) {
  std::atomic<bool> is_in = false;
  std::jthread other;
  fixture_.candidates().on<worker::CandidateLoadRequest>([&](const auto&, const Fd&) {
    other = std::jthread([&] {
      const auto all = fixture_.device.memory(Schedule::kAll);
      is_in = true;
    });
    while (fixture_.num_waiting() < 1) std::this_thread::yield();
    return worker::CandidateLoadResponse();
  });
  bool was_in = true;
  fixture_.candidates().on<worker::CandidateRunThereRequest>([&](const auto&, const Fd&) {
    was_in = is_in;
    return worker::CandidateRunThereResponse();
  });
  fixture_.options.timing.enabled = false;
  outcome<task::Passed>();
  EXPECT_FALSE(was_in);
  other.join();
  EXPECT_TRUE(is_in);
}

}  // namespace
}  // namespace mc::eval
