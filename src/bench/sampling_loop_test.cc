// SPDX-License-Identifier: Apache-2.0
#include "bench/sampling_loop.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "core/hash.h"
#include "reward/feedback.h"
#include "reward/score.h"

namespace mc::bench {
namespace {

using store::Answer;
using store::AnswerKey;
using store::Judgement;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- A world by a seed --------------------------------------------------------------------------

// A simulated model and verifier: the model's answer to each request, and the verdict for each
// text.
struct World {
  uint64_t seed = 0;
  std::vector<std::string> tasks = {"a", "b", "c"};
  int num_texts = 6;  // The number is small, so that many answers to a task are equal.
  // True to simulate requests without an answer, and failures of the machine.
  bool has_faults = true;

  uint64_t draw(std::string_view what, uint64_t num) const { return derive_seed(seed, what) % num; }

  // The text of an answer; empty for a request without an answer.
  std::optional<std::string> text(const AnswerKey& key) const {
    const std::string name = to_string(key);
    if (has_faults && draw("failure " + name, 8) == 0) return std::nullopt;
    return fmt::format("text {}", draw("text " + name, static_cast<uint64_t>(num_texts)));
  }

  task::Outcome outcome(const std::string& task, const std::string& text) const {
    const std::string name = task + " " + text;
    if (has_faults && draw("infra " + name, 8) == 0) return task::Infra{"no memory"};
    switch (draw("outcome " + name, 5)) {
      case 0:
        return task::Passed{};
      case 1:
        return task::Unsupported{};
      case 2:
        return task::Unextractable{.reason = "no_code", .detail = text, .location = {}};
      default:
        return task::Wrong{.q = 0.5, .specialised = false, .trials = {}};
    }
  }
};

std::vector<sample::Item> items_of(const World& world) {
  std::vector<sample::Item> out;
  for (const std::string& id : world.tasks) {
    out.push_back({{id, id, "code of " + id}, {{"user", "write " + id}}, "", {}});
  }
  return out;
}

// The final records of a store.
struct Records {
  std::map<AnswerKey, std::string> texts;
  std::map<AnswerKey, std::string> outcomes;
  bool operator==(const Records&) const = default;
};

// A simple sequential implementation of a loop in an empty store.
struct Twin {
  Records records;
  std::map<AnswerKey, sample::Messages> asked;             // The messages of each request.
  std::set<std::pair<std::string, std::string>> to_judge;  // Pairs of task and text.
  int64_t num_failed = 0;
  int64_t num_passed = 0;

  Twin(const World& world, const SamplingOptions& options) {
    for (const sample::Item& item : items_of(world)) {
      for (int64_t i = 0; i < options.samples; ++i) play(world, options, item, i);
    }
  }

  void play(const World& world, const SamplingOptions& options, const sample::Item& item,
            int64_t number) {
    sample::Messages messages = item.prompt;
    for (int64_t turn = 0; turn < options.turns; ++turn) {
      const AnswerKey key{item.task.id, number, turn};
      asked[key] = messages;
      const auto text = world.text(key);
      if (!text) {
        ++num_failed;
        return;
      }
      task::Verdict verdict;
      verdict.outcome = world.outcome(key.id, *text);
      records.texts[key] = *text;
      records.outcomes[key] = task::outcome_name(verdict.outcome);
      to_judge.insert({key.id, *text});
      if (std::holds_alternative<task::Passed>(verdict.outcome)) ++num_passed;
      if (std::holds_alternative<task::Passed>(verdict.outcome) ||
          std::holds_alternative<task::Infra>(verdict.outcome)) {
        return;
      }
      messages.push_back({"assistant", *text});
      messages.push_back({"user", reward::repair_request(reward::feedback(verdict, {}))});
    }
  }
};

// ---- Fakes --------------------------------------------------------------------------------------

enum class Takes { kOne, kAll };

class FakeEvaluator final : public task::Evaluator {
 public:
  explicit FakeEvaluator(const World& world) : world_(world) {}

  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate) override {
    ++num_busy;
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(candidate.id, task.id) << "the verdict hangs on which sample comes first";
    calls.push_back({task.id, candidate.answer});
    task::Verdict verdict;
    verdict.task = task.id;
    verdict.candidate = candidate.id;
    verdict.outcome = world_.outcome(task.id, candidate.answer);
    --num_busy;
    return verdict;
  }

  std::atomic<int> num_busy = 0;
  std::vector<std::pair<std::string, std::string>> calls;  // Pairs of task and text.

 private:
  const World& world_;
  std::mutex mutex_;
};

class FakeSampler final : public Sampler {
 public:
  FakeSampler(const World& world, Takes takes, const FakeEvaluator* evaluator)
      : world_(world), takes_(takes), evaluator_(evaluator) {}

  bool takes_all() const override { return takes_ == Takes::kAll; }

  Result<std::vector<Result<Answer>>> ask(std::span<const Request> requests) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(requests.empty());
    EXPECT_TRUE(takes_all() || requests.size() == 1);
    EXPECT_TRUE(!takes_all() || evaluator_ == nullptr || evaluator_->num_busy == 0);
    std::vector<Result<Answer>> out;
    for (const Request& request : requests) {
      asked.push_back({request.key, request.messages});
      const auto text = world_.text(request.key);
      if (text) {
        out.push_back(Answer{.key = request.key, .completion = *text});
      } else {
        out.push_back(Error{ErrorCode::kInvalidInput, "too long"});
      }
    }
    num_of_each_call.push_back(requests.size());
    return out;
  }

  std::vector<std::pair<AnswerKey, sample::Messages>> asked;
  std::vector<size_t> num_of_each_call;

 private:
  const World& world_;
  const Takes takes_;
  const FakeEvaluator* evaluator_;
  std::mutex mutex_;
};

// A sampler that answers "wrong", until a given request, which ends the whole loop.
class FailingSampler final : public Sampler {
 public:
  explicit FailingSampler(int num_answers) : num_answers_(num_answers) {}
  bool takes_all() const override { return false; }
  Result<std::vector<Result<Answer>>> ask(std::span<const Request> requests) override {
    if (num_answers_-- <= 0) return Error{ErrorCode::kUnavailable, "the server is down"};
    return std::vector<Result<Answer>>{Answer{.key = requests[0].key, .completion = "wrong"}};
  }

 private:
  std::atomic<int> num_answers_;
};

// A folder in memory if the machine has one, because a loop waits for the disk at each record.
Result<TemporaryDirectory> temporary_folder() {
  const std::filesystem::path memory = "/dev/shm";
  std::error_code ignored;
  return std::filesystem::exists(memory, ignored) ? TemporaryDirectory::create_in(memory, "loop")
                                                  : TemporaryDirectory::create("loop");
}

// A store with one run.
struct OpenStore {
  OpenStore() {
    auto opened = store::Store::open(folder->path() / "store.sqlite");
    store = std::move(*opened);
    run.emplace(*store->begin({.name = "m", .kind = "bench", .settings = "{}"}));
  }

  Records records() const {
    Records out;
    const auto answers = run->answers();
    const auto judgements = run->judgements();
    EXPECT_TRUE(answers && judgements);
    for (const Answer& answer : *answers) out.texts[answer.key] = answer.completion;
    for (const Judgement& one : *judgements) {
      out.outcomes[one.key] = task::outcome_name(one.verdict.outcome);
      EXPECT_EQ(one.verdict.candidate, to_string(one.key));
      EXPECT_EQ(one.reward, reward::score(one.verdict, {}));
      EXPECT_EQ(one.feedback, reward::feedback(one.verdict, {}));
    }
    return out;
  }

  const Result<TemporaryDirectory> folder = temporary_folder();
  std::unique_ptr<store::Store> store;
  std::optional<store::Run> run;
};

// All effects of a loop.
struct Played {
  std::vector<std::pair<AnswerKey, sample::Messages>> asked;
  std::vector<size_t> num_of_each_call;
  std::vector<std::pair<std::string, std::string>> judged;
  SamplingProgress last;
  Result<SamplingEnd> end = SamplingEnd();
};

Played play(const World& world, const SamplingOptions& options, Takes takes, OpenStore& store) {
  FakeEvaluator evaluator(world);
  FakeSampler sampler(world, takes, &evaluator);
  const std::vector<sample::Item> items = items_of(world);
  Played out;
  int64_t num_verdicts = 0;
  const auto observe = [&](const SamplingProgress& progress) {
    EXPECT_GE(progress.num_verdicts, num_verdicts);
    EXPECT_GE(progress.num_waiting, 0);
    EXPECT_GE(progress.num_sampling, 0);
    EXPECT_LE(progress.num_sampling, progress.num_asked);
    num_verdicts = progress.num_verdicts;
    out.last = progress;
  };
  const SamplingLoop loop(*store.run, items, options, observe);
  out.end = loop.run(&sampler, evaluator);
  out.asked = sampler.asked;
  out.num_of_each_call = sampler.num_of_each_call;
  out.judged = evaluator.calls;
  return out;
}

std::map<AnswerKey, std::string> words_of(
    const std::vector<std::pair<AnswerKey, sample::Messages>>& asked) {
  std::map<AnswerKey, std::string> out;
  for (const auto& [key, messages] : asked) {
    EXPECT_FALSE(out.contains(key)) << to_string(key) << " was asked twice";
    for (const sample::Message& one : messages) out[key] += one.role + ": " + one.content + "\n";
  }
  return out;
}

SamplingOptions options_of(std::mt19937_64& random) {
  return {.samples = 1 + static_cast<int64_t>(random() % 5),
          .turns = 1 + static_cast<int64_t>(random() % 3),
          .concurrency = 1 + static_cast<int>(random() % 4),
          .judges = 1 + static_cast<int>(random() % 3)};
}

// ---- Against the sequential reference -----------------------------------------------------------

class Courses : public testing::TestWithParam<Takes> {
 protected:
  const uint64_t seed_ = random_seed();
  std::mt19937_64 random_{seed_};
  const testing::ScopedTrace trace_{__FILE__, __LINE__, fmt::format("seed {}", seed_)};
};

TEST_P(Courses, RequestAndJudgeLikeTheReference) {
  for (int round = 0; round < 20; ++round) {
    const World world{.seed = random_()};
    const SamplingOptions options = options_of(random_);
    const Twin twin(world, options);
    OpenStore store;
    const Played played = play(world, options, GetParam(), store);
    ASSERT_TRUE(played.end) << played.end.error().message;
    EXPECT_EQ(store.records(), twin.records);
    EXPECT_EQ(words_of(played.asked), words_of({twin.asked.begin(), twin.asked.end()}));
    EXPECT_EQ(played.last.num_failed, twin.num_failed);
    EXPECT_EQ(played.last.num_answers, static_cast<int64_t>(twin.records.texts.size()));
    EXPECT_EQ(played.last.num_verdicts, static_cast<int64_t>(twin.records.outcomes.size()));
    EXPECT_EQ(played.last.num_asked, 0);
    EXPECT_EQ(played.last.num_waiting, 0);
    // Equal texts are judged once, unless the machine failed.
    std::map<std::pair<std::string, std::string>, int> calls;
    for (const auto& call : played.judged) ++calls[call];
    EXPECT_EQ(calls.size(), twin.to_judge.size());
    for (const auto& [call, num] : calls) {
      EXPECT_TRUE(twin.to_judge.contains(call));
      const task::Outcome outcome = world.outcome(call.first, call.second);
      EXPECT_TRUE(num == 1 || std::holds_alternative<task::Infra>(outcome));
    }
  }
}

TEST_P(Courses, ReachTheSameEndFromAnyPartialStore) {
  for (int round = 0; round < 15; ++round) {
    const World world{.seed = random_(), .has_faults = false};
    const SamplingOptions options = options_of(random_);
    OpenStore whole;
    ASSERT_TRUE(play(world, options, GetParam(), whole).end);
    // The records of each sample in order; the store is filled with a random prefix of each.
    std::map<std::pair<std::string, int64_t>, std::vector<std::variant<Answer, Judgement>>> left;
    const auto answers = whole.run->answers();
    const auto judgements = whole.run->judgements();
    for (size_t i = 0; i < answers->size(); ++i) {
      auto& records = left[{(*answers)[i].key.id, (*answers)[i].key.sample}];
      records.emplace_back((*answers)[i]);
      records.emplace_back((*judgements)[i]);
    }
    std::set<AnswerKey> kept_answers;
    std::set<AnswerKey> kept_judgements;
    OpenStore part;
    for (const auto& [sample, records] : left) {
      const size_t num = random_() % (records.size() + 1);
      for (size_t i = 0; i < num; ++i) {
        if (const auto* answer = std::get_if<Answer>(&records[i])) {
          ASSERT_TRUE(part.run->add(*answer));
          kept_answers.insert(answer->key);
        } else {
          ASSERT_TRUE(part.run->add(std::get<Judgement>(records[i])));
          kept_judgements.insert(std::get<Judgement>(records[i]).key);
        }
      }
    }
    const Played played = play(world, options, GetParam(), part);
    ASSERT_TRUE(played.end) << played.end.error().message;
    EXPECT_EQ(part.records(), whole.records());
    for (const auto& [key, messages] : played.asked) EXPECT_FALSE(kept_answers.contains(key));
    EXPECT_EQ(played.asked.size(), answers->size() - kept_answers.size());
    std::set<std::pair<std::string, std::string>> known;
    for (const AnswerKey& key : kept_judgements) known.insert({key.id, *world.text(key)});
    for (const auto& call : played.judged) EXPECT_FALSE(known.contains(call));
  }
}

TEST_P(Courses, RetryFailuresThatAreNotTheModelsFault) {
  for (int round = 0; round < 10; ++round) {
    World world{.seed = random_()};
    const SamplingOptions options = options_of(random_);
    OpenStore store;
    ASSERT_TRUE(play(world, options, GetParam(), store).end);
    world.has_faults = false;
    ASSERT_TRUE(play(world, options, GetParam(), store).end);
    EXPECT_EQ(store.records(), Twin(world, options).records);
    EXPECT_TRUE(play(world, options, GetParam(), store).asked.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(, Courses, testing::Values(Takes::kOne, Takes::kAll),
                         [](const auto& takes) {
                           return takes.param == Takes::kOne ? "OfOneRequestACall"
                                                             : "OfAllRequestsACall";
                         });

// ---- One by one ---------------------------------------------------------------------------------

TEST(SamplingLoop, RequestsInWavesIfTheSamplerTakesAllRequests) {
  // Each text is different, and no sample passes within two turns.
  World world{.seed = 1, .num_texts = 1'000'000, .has_faults = false};
  const SamplingOptions options{.samples = 4, .turns = 2};
  while (Twin(world, options).num_passed > 0) ++world.seed;
  OpenStore store;
  const Played played = play(world, options, Takes::kAll, store);
  EXPECT_THAT(played.num_of_each_call, ElementsAre(12, 12));
  for (size_t i = 0; i < played.asked.size(); ++i) {
    EXPECT_EQ(played.asked[i].first.turn, i < 12 ? 0 : 1);
  }
}

TEST(SamplingLoop, PlansTheRemainingWork) {
  const World world{.seed = 1};
  const std::vector<sample::Item> items = items_of(world);
  OpenStore store;
  ASSERT_TRUE(store.run->add(Answer{.key = {"a", 0, 0}, .completion = "x"}));
  ASSERT_TRUE(store.run->add(Answer{.key = {"a", 1, 0}, .completion = "y"}));
  ASSERT_TRUE(store.run->add(Answer{.key = {"not in the suite", 0, 0}, .completion = "y"}));
  Judgement one{.key = {"a", 0, 0}, .reward = -1, .verdict = {}};
  one.verdict.outcome = task::Unextractable{};
  ASSERT_TRUE(store.run->add(one));
  one = {.key = {"a", 1, 0}, .reward = {}, .verdict = {}};
  one.verdict.outcome = task::Infra{};
  ASSERT_TRUE(store.run->add(one));
  const SamplingLoop loop(*store.run, items, {.samples = 2, .turns = 2}, [](const auto&) {});
  FakeSampler sampler(world, Takes::kOne, nullptr);
  const auto with = loop.plan(&sampler);
  ASSERT_TRUE(with);
  EXPECT_EQ(with->num_to_ask, 5U) << "the second turn of a#0, and two samples of two tasks";
  EXPECT_EQ(with->num_to_judge, 1U) << "what the machine failed at";
  EXPECT_EQ(with->num_judged, 1);
  const auto without = loop.plan(nullptr);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->num_to_ask, 0U);
  EXPECT_EQ(without->num_to_judge, 1U);
}

TEST(SamplingLoop, JudgesStoredAnswersOfAnySampleAndTurn) {
  const World world{.seed = 5, .has_faults = false};
  const std::vector<sample::Item> items = items_of(world);
  OpenStore store;
  for (const AnswerKey& key : {AnswerKey{"a", 0, 0}, {"a", 0, 3}, {"b", 7, 0}}) {
    ASSERT_TRUE(store.run->add(Answer{.key = key, .completion = "text 1"}));
  }
  FakeEvaluator evaluator(world);
  const SamplingLoop loop(*store.run, items, {}, [](const auto&) {});
  ASSERT_TRUE(loop.run(nullptr, evaluator));
  EXPECT_EQ(store.records().outcomes.size(), 3U);
  EXPECT_EQ(evaluator.calls.size(), 2U) << "the two answers to one task are equal";
}

TEST(SamplingLoop, LimitsTheTokensOfTheVerifiersFeedback) {
  World world{.seed = 1, .has_faults = false};
  const SamplingOptions options{.samples = 1, .turns = 2, .feedback_tokens = 50};
  while (Twin(world, options).num_passed > 0) ++world.seed;
  OpenStore store;
  const Played played = play(world, options, Takes::kOne, store);
  const auto judgements = store.run->judgements();
  ASSERT_FALSE(judgements->empty());
  for (const Judgement& one : *judgements) {
    EXPECT_EQ(one.feedback, reward::feedback(one.verdict, {.tokens_max = 50}));
  }
}

TEST(SamplingLoop, EndsAfterTheMaximumNumberOfFailures) {
  World world{.seed = 1};
  world.tasks.clear();
  for (int i = 0; i < 200; ++i) world.tasks.push_back(fmt::format("task {}", i));
  const SamplingOptions options{.samples = 1, .concurrency = 1, .failures_max = 3};
  OpenStore store;
  const Played played = play(world, options, Takes::kOne, store);
  ASSERT_FALSE(played.end);
  EXPECT_THAT(played.end.error().message, HasSubstr("--fail-on-error: too long"));
  EXPECT_EQ(played.last.num_failed, 3);
  EXPECT_EQ(store.run->answers()->size(), played.asked.size() - 3) << "answers are kept";
}

TEST(SamplingLoop, CountsTheReasonsOfRequestsWithoutAnAnswer) {
  const World world{.seed = 1};
  const SamplingOptions options{.samples = 20};
  OpenStore store;
  const Played played = play(world, options, Takes::kOne, store);
  ASSERT_TRUE(played.end);
  ASSERT_GT(played.last.num_failed, 0);
  EXPECT_EQ(played.end->failed.at("too long"), played.last.num_failed);
  EXPECT_EQ(played.end->last_failure->message, "too long");
}

TEST(SamplingLoop, EndsIfNoRequestCanBeAnsweredAndKeepsEarlierAnswers) {
  const World world{.seed = 1, .has_faults = false};
  const std::vector<sample::Item> items = items_of(world);
  OpenStore store;
  FakeEvaluator evaluator(world);
  FailingSampler sampler(4);
  const SamplingLoop loop(*store.run, items, {.samples = 5}, [](const auto&) {});
  const auto end = loop.run(&sampler, evaluator);
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("the server is down"));
  EXPECT_EQ(store.run->answers()->size(), 4U);
}

TEST(SamplingLoop, OpensTheEvaluatorForTheFirstAnswerAndEndsWithItsError) {
  const World world{.seed = 1, .has_faults = false};
  const std::vector<sample::Item> items = items_of(world);
  OpenStore opened;
  int num_opened = 0;
  const SamplingLoop loop(*opened.run, items, {.judges = 1}, [](const auto&) {});
  const auto open = [&]() -> Result<task::Evaluator*> {
    ++num_opened;
    return Error{ErrorCode::kUnavailable, "no sandbox"};
  };
  FailingSampler down(0);
  const auto unanswered = loop.run(&down, open);
  ASSERT_FALSE(unanswered);
  EXPECT_THAT(unanswered.error().message, HasSubstr("the server is down"));
  EXPECT_EQ(num_opened, 0) << "there was nothing to judge";
  FakeSampler answers(world, Takes::kOne, nullptr);
  const auto unjudged = loop.run(&answers, open);
  ASSERT_FALSE(unjudged);
  EXPECT_THAT(unjudged.error().message, HasSubstr("no sandbox"));
  EXPECT_EQ(num_opened, 1);
  EXPECT_FALSE(opened.records().texts.empty()) << "what was answered is kept";
}

TEST(SamplingLoop, EndsIfTheStoreCannotBeWritten) {
  const World world{.seed = 1, .has_faults = false};
  const std::vector<sample::Item> items = items_of(world);
  const OpenStore store;
  const auto reader = store::Store::open_to_read(store.folder->path() / "store.sqlite");
  ASSERT_TRUE(reader);
  store::Run run = (*reader)->runs()->at(0);
  FakeEvaluator evaluator(world);
  FakeSampler sampler(world, Takes::kOne, nullptr);
  const SamplingLoop loop(run, items, {.samples = 5}, [](const auto&) {});
  const auto end = loop.run(&sampler, evaluator);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mc::bench
