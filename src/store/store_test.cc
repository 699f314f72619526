// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/hash.h"
#include "task/testing/verdict_generator.h"

namespace mc::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

using StoredRun = Run;  // A base class of the tests has a member named Run.

Judgement judgement(AnswerKey key, uint64_t seed) {
  Judgement one{.key = std::move(key),
                .reward = {},
                .seconds = 0.5,
                .feedback = "feedback",
                .verdict = task::generate_verdict(seed, seed % 10)};
  if (seed % 2 == 0) one.reward = 0.25;
  return one;
}

void expect_equal(const Judgement& a, const Judgement& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.reward, b.reward);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.feedback, b.feedback);
  EXPECT_EQ(a.verdict, b.verdict);
}

class Stores : public testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    auto store = Store::open(path_);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }

  StoredRun begin(Store& store, const std::string& settings = R"({"turns":1})") {
    auto run = store.begin({.name = "m", .kind = "bench", .settings = settings});
    EXPECT_TRUE(run) << run.error().message;
    return *run;
  }

  // Executes statements directly in the file, as another program may do.
  void execute(const std::string& statements) {
    SQLite::Database(path_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(statements);
  }

  const Result<TemporaryDirectory> folder_ = TemporaryDirectory::create("store");
  const std::filesystem::path path_ = folder_->path() / "a folder" / "store.sqlite";
};

// ---- Round trips --------------------------------------------------------------------------------

TEST_F(Stores, ReadBackAnswersUnchanged) {
  const std::vector<Answer> answers = {
      {.key = {"a", 0, 0}, .completion = std::string("NUL \0 here", 10)},
      {.key = {"a", 0, 1},
       .completion = "\xff\xfe no UTF-8, and half of a pair: \xed\xa0\x80",
       .reasoning = "thoughts",
       .finish = "length",
       .num_tokens = 3,
       .reasoning_tokens = 2,
       .prompt_tokens = 1,
       .seconds = 0.1},
      {.key = {"a", 10, 0}, .completion = ""},
      {.key = {"b'); DROP TABLE answer; --", 2, 0}, .completion = std::string(1 << 20, 'x')}};
  {
    const auto store = open();
    StoredRun run = begin(*store);
    for (auto answer = answers.rbegin(); answer != answers.rend(); ++answer) {
      ASSERT_TRUE(run.add(*answer));
    }
    EXPECT_EQ(*run.answers(), answers);
  }
  const auto store = Store::open_to_read(path_);
  ASSERT_TRUE(store);
  EXPECT_EQ(*(*store)->runs()->at(0).answers(), answers);
}

TEST_F(Stores, ReadBackVerdictsOfEveryOutcome) {
  const auto store = open();
  StoredRun run = begin(*store);
  std::vector<Judgement> all;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    all.push_back(judgement({"t", static_cast<int64_t>(seed), 0}, seed));
    ASSERT_TRUE(run.add(all.back()));
  }
  const auto again = run.judgements();
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) expect_equal((*again)[i], all[i]);
}

TEST_F(Stores, ReadBackTasksWithNamesThatAreNotUtf8) {
  const auto store = open();
  StoredRun run = begin(*store);
  const std::vector<TaskRecord> tasks = {{"a", "level 1", {"softmax", "\"quoted\""}, "code"},
                                         {"b", "", {}, "\xff"}};
  ASSERT_TRUE(run.set_tasks(tasks));
  EXPECT_EQ(*run.tasks(), tasks);
  ASSERT_TRUE(run.set_tasks(std::vector<TaskRecord>{{"c", "", {"\xff"}, ""}}));
  EXPECT_EQ(*run.tasks(), std::vector<TaskRecord>({{"c", "", {"\ufffd"}, ""}}));
}

TEST_F(Stores, KeepTheLastRecordOfEachKeyAndName) {
  const auto store = open();
  StoredRun run = begin(*store);
  const AnswerKey key{"a", 0, 0};
  ASSERT_TRUE(run.add(Answer{.key = key, .completion = "first"}));
  ASSERT_TRUE(run.add(Answer{.key = key, .completion = "second"}));
  ASSERT_TRUE(run.add(judgement(key, 1)));
  ASSERT_TRUE(run.add(judgement(key, 2)));
  ASSERT_TRUE(run.put("summary", "first"));
  ASSERT_TRUE(run.put("summary", "second"));
  EXPECT_EQ(run.answers()->size(), 1U);
  EXPECT_EQ(run.answers()->at(0).completion, "second");
  ASSERT_EQ(run.judgements()->size(), 1U);
  expect_equal(run.judgements()->at(0), judgement(key, 2));
  EXPECT_EQ(*run.text("summary"), "second");
  EXPECT_EQ(*run.text("another"), std::nullopt);
}

TEST_F(Stores, KeepRunsSeparate) {
  const auto store = open();
  for (const char* name : {"a (\"b\")", "", "a'; --", "a#1"}) {
    auto run = store->begin({.name = name, .kind = "bench", .settings = "{}"});
    ASSERT_TRUE(run);
    ASSERT_TRUE(run->add(Answer{.key = {name, 0, 0}, .completion = name}));
  }
  const auto runs = store->runs();
  ASSERT_EQ(runs->size(), 4U);
  for (const StoredRun& run : *runs) {
    ASSERT_EQ(run.answers()->size(), 1U);
    EXPECT_EQ(run.answers()->at(0).key.id, run.record().name);
    EXPECT_THAT(run.record().created, MatchesRegex("20..-..-..T..:..:..Z"));
  }
}

TEST_F(Stores, AddAllAnswersOfATransactionOrNone) {
  const auto store = open();
  StoredRun run = begin(*store);
  execute(
      "CREATE TRIGGER refuse BEFORE INSERT ON answer WHEN new.sample = 2 "
      "BEGIN SELECT RAISE(ABORT, 'no'); END");
  std::vector<Answer> answers;
  for (int64_t i = 0; i < 4; ++i) answers.push_back({.key = {"a", i, 0}, .completion = "x"});
  EXPECT_FALSE(run.add(answers));
  EXPECT_TRUE(run.answers()->empty());
  answers.resize(2);
  EXPECT_TRUE(run.add(answers));
  EXPECT_EQ(*run.answers(), answers);
}

// ---- Going on -----------------------------------------------------------------------------------

TEST_F(Stores, ResumeARunWithEqualSettings) {
  {
    const auto store = open();
    ASSERT_TRUE(begin(*store, R"({"turns":1,"model":"m"})")
                    .add(Answer{.key = {"a", 0, 0}, .completion = "x"}));
  }
  const auto store = open();
  StoredRun run = begin(*store, R"({"model": "m", "turns": 1})");
  EXPECT_EQ(run.answers()->size(), 1U);
  EXPECT_EQ(store->runs()->size(), 1U);
}

TEST_F(Stores, NameTheSettingThatDiffersFromTheExistingRun) {
  const auto store = open();
  begin(*store, R"({"model":"m","turns":1})");
  const struct {
    std::string settings, words;
  } kTable[] = {{R"({"model":"m","turns":2})", "turns was 1, now 2"},
                {R"({"model":"m"})", "turns was 1, now not given"},
                {R"({"model":"m","turns":1,"top_k":[3]})", "top_k was not given, now 3"},
                {R"({"model":"m","turns":1,"options":{"--trials":["3"]}})",
                 "--trials was not given, now \"3\""},
                {"[]", "its settings cannot be read"}};
  for (const auto& row : kTable) {
    const auto run = store->begin({.name = "m", .kind = "bench", .settings = row.settings});
    ASSERT_FALSE(run) << row.words;
    EXPECT_EQ(run.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(run.error().message, HasSubstr(row.words));
  }
  const auto other =
      store->begin({.name = "m", .kind = "optimize", .settings = R"({"model":"m","turns":1})"});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("it is of the kind bench"));
}

TEST_F(Stores, HaveOneRunInARunFolder) {
  const std::filesystem::path folder = path_.parent_path();
  ASSERT_FALSE(open_run_to_read(folder));
  open();  // A store without a run, as a killed process may leave it.
  const auto empty = open_run_to_read(folder);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kNotFound);
  const auto begin_run = [&](const std::string& settings) {
    return open_run(folder, {.name = "rl", .kind = "rl", .settings = settings});
  };
  ASSERT_TRUE(begin_run(R"({"seed":1})")->run.put("episodes 0", "lines"));
  const auto other = begin_run(R"({"seed":2})");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("other settings (seed was 1, now 2)"));
  EXPECT_EQ(*open_run_to_read(folder)->run.text("episodes 0"), "lines");
}

// ---- Several users ------------------------------------------------------------------------------

TEST_F(Stores, HaveOneWriter) {
  auto first = open();
  const auto second = Store::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("is in use by another run"));
  first.reset();
  EXPECT_TRUE(Store::open(path_));
}

TEST_F(Stores, CanBeReadWhileAWriterWrites) {
  constexpr int64_t kNum = 100;
  const auto store = open();
  StoredRun run = begin(*store);
  std::jthread writer([&] {
    for (int64_t i = 0; i < kNum; ++i) {
      ASSERT_TRUE(run.add(Answer{.key = {"a", i, 0}, .completion = std::string(2000, 'x')}));
    }
  });
  const auto reader = Store::open_to_read(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  const StoredRun seen = (*reader)->runs()->at(0);
  for (int64_t num = 0; num < kNum;) {
    const auto answers = seen.answers();
    ASSERT_TRUE(answers) << answers.error().message;
    ASSERT_GE(static_cast<int64_t>(answers->size()), num) << "an answer was gone again";
    num = static_cast<int64_t>(answers->size());
    for (int64_t i = 0; i < num; ++i) ASSERT_EQ((*answers)[static_cast<size_t>(i)].key.sample, i);
  }
}

TEST_F(Stores, AcceptRecordsFromManyThreads) {
  const auto store = open();
  StoredRun run = begin(*store);
  {
    std::vector<std::jthread> threads;
    for (int64_t sample = 0; sample < 4; ++sample) {
      threads.emplace_back([&run, sample] {
        for (int64_t turn = 0; turn < 5; ++turn) {
          ASSERT_TRUE(run.add(Answer{.key = {"a", sample, turn}, .completion = "x"}));
          ASSERT_TRUE(run.add(judgement({"a", sample, turn}, 3)));
        }
      });
    }
  }
  EXPECT_EQ(run.answers()->size(), 20U);
  EXPECT_EQ(run.judgements()->size(), 20U);
}

TEST_F(Stores, CannotBeWrittenByAReader) {
  begin(*open());
  const auto reader = Store::open_to_read(path_);
  ASSERT_TRUE(reader);
  const Status added = (*reader)->runs()->at(0).add(Answer{.key = {"a", 0, 0}, .completion = "x"});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kIo);
}

// ---- Files --------------------------------------------------------------------------------------

TEST_F(Stores, BeginInAnEmptyFile) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_).flush();
  const auto reader = Store::open_to_read(path_);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(reader.error().message, HasSubstr("holds no run yet"));
  begin(*open());
  EXPECT_TRUE(Store::open_to_read(path_));
}

TEST_F(Stores, AreNotCreatedByReading) {
  const auto reader = Store::open_to_read(path_);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Stores, DoNotOverwriteOtherFiles) {
  std::filesystem::create_directories(path_.parent_path());
  const auto refuses = [&](const std::string& words) {
    for (const auto& result : {Store::open(path_), Store::open_to_read(path_)}) {
      EXPECT_FALSE(result) << words;
      if (result) continue;
      EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput) << result.error().message;
      EXPECT_THAT(result.error().message, HasSubstr(words));
    }
  };
  const std::string text = std::string(5000, 'x');
  std::ofstream(path_) << text;
  refuses("not a database");
  EXPECT_EQ(*read_file(path_, 10'000), text);
  std::filesystem::remove(path_);
  execute("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
  refuses("a SQLite file of another program");
  std::filesystem::remove(path_);
  begin(*open());
  execute("PRAGMA user_version = 1000");
  refuses("has version 1000, this program reads up to 1");
}

TEST_F(Stores, NameAPathThatCannotBeWritten) {
  for (const char* path : {"/proc/no/store.sqlite", "/dev/null/store.sqlite"}) {
    const auto store = Store::open(path);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(store.error().message, HasSubstr(std::filesystem::path(path).parent_path()));
  }
}

TEST_F(Stores, ReportAFullDiskAndKeepEarlierRecords) {
  constexpr rlim_t kBytesMax = 200'000;  // The limit of a file's size simulates a full disk.
  begin(*open());
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kBytesMax, kBytesMax};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    auto store = Store::open(path_);
    StoredRun run = (*store)->runs()->at(0);
    int64_t num = 0;
    while (run.add(Answer{.key = {"a", num, 0}, .completion = std::string(5000, 'x')})) ++num;
    const Status last = run.add(Answer{.key = {"b", 0, 0}, .completion = std::string(5000, 'x')});
    const bool is_told = !last && last.error().code == ErrorCode::kIo;
    ::_exit(is_told && num > 10 && static_cast<int64_t>(run.answers()->size()) == num ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_GT((*Store::open_to_read(path_))->runs()->at(0).answers()->size(), 10U);
}

// ---- Kills --------------------------------------------------------------------------------------

// Repeatedly adds an answer and its verdict, and writes a byte to the pipe after each `add`.
[[noreturn]] void write_until_killed(const std::filesystem::path& path, int pipe) {
  auto store = Store::open(path);
  if (!store) ::_exit(1);
  auto run = (*store)->begin({.name = "m", .kind = "bench", .settings = "{}"});
  if (!run) ::_exit(2);
  for (auto i = static_cast<int64_t>(run->answers()->size());; ++i) {
    const AnswerKey key{"a", i, 0};
    if (!run->add(Answer{.key = key, .completion = std::string(20'000, 'x')})) ::_exit(3);
    if (::write(pipe, "a", 1) != 1) ::_exit(4);
    if (!run->add(judgement(key, 3))) ::_exit(5);
    if (::write(pipe, "v", 1) != 1) ::_exit(6);
  }
}

TEST_F(Stores, KeepAllRecordsAddedBeforeAKill) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  int64_t answers = 0;
  int64_t verdicts = 0;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(path_, ends[1]);
    ::close(ends[1]);
    // The kill comes after num_read bytes and a random delay, so it may interrupt an `add`.
    const uint64_t num_read = random() % 20;
    char byte = 0;
    for (uint64_t i = 0; i < num_read && ::read(ends[0], &byte, 1) == 1; ++i) {
      (byte == 'a' ? answers : verdicts) += 1;
    }
    ::usleep(static_cast<useconds_t>(random() % 3000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    while (::read(ends[0], &byte, 1) == 1) (byte == 'a' ? answers : verdicts) += 1;
    ::close(ends[0]);
    if (answers == 0) continue;  // The process may have been killed before it created the file.
    // Even rounds check the state as a reader, odd rounds as a writer.
    const auto store = round % 2 == 0 ? Store::open_to_read(path_) : Store::open(path_);
    ASSERT_TRUE(store) << store.error().message;
    const StoredRun run = (*store)->runs()->at(0);
    const auto found = run.answers();
    const auto judged = run.judgements();
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(judged) << judged.error().message;
    const auto num_found = static_cast<int64_t>(found->size());
    const auto num_judged = static_cast<int64_t>(judged->size());
    ASSERT_GE(num_found, answers);
    ASSERT_LE(num_found, answers + 1) << "one may be in the file whose add did not return";
    ASSERT_GE(num_judged, verdicts);
    answers = num_found;
    verdicts = num_judged;
  }
  EXPECT_GT(answers, 0);
}

TEST_F(Stores, CanBeReadAfterAKillWithinATransaction) {
  {
    begin(*open());
  }
  const pid_t child = ::fork();
  if (child == 0) {
    SQLite::Database database(path_.string(), SQLite::OPEN_READWRITE);
    // With a tiny cache, SQLite writes pages to the file before the transaction ends.
    database.exec("PRAGMA cache_size = 1; BEGIN IMMEDIATE");
    for (int i = 0; i < 200; ++i) {
      database.exec(fmt::format("INSERT INTO text VALUES(1, '{}', hex(zeroblob(3000)))", i));
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(std::filesystem::exists(path_.string() + "-journal")) << "nothing is left to undo";
  const auto reader = Store::open_to_read(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  const auto runs = (*reader)->runs();
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(*runs->at(0).text("0"), std::nullopt);
}

}  // namespace
}  // namespace mc::store
