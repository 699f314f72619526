// SPDX-License-Identifier: Apache-2.0
#include "sample/bench_folder.h"

#include <csignal>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/file.h"

namespace mc::sample {
namespace {

using testing::HasSubstr;

const std::string kSettings = R"({"samples":1,"suite":"s"})";

class Folder : public testing::Test {
 protected:
  std::unique_ptr<BenchFolder> open() {
    auto folder = BenchFolder::open(path_, kSettings);
    EXPECT_TRUE(folder) << folder.error().message;
    return folder ? std::move(folder).value() : nullptr;
  }

  static Judgement judgement(const std::string& id, task::Outcome outcome) {
    Judgement out;
    out.key = {id, 0, 0};
    out.reward = 1;
    out.seconds = 0.5;
    out.verdict.task = id;
    out.verdict.outcome = std::move(outcome);
    return out;
  }

  const Result<TemporaryDirectory> parent_ = TemporaryDirectory::create("bench");
  const std::filesystem::path path_ = parent_->path() / "out";
};

TEST_F(Folder, KeepsAnswersAndVerdicts) {
  {
    const auto folder = open();
    ASSERT_TRUE(folder->add(Answer{{"a", 0, 0}, "text", 3, "stop"}));
    ASSERT_TRUE(folder->add(judgement("a", task::Passed{})));
  }
  const auto folder = open();
  EXPECT_TRUE(folder->is_answered({"a", 0, 0}));
  EXPECT_FALSE(folder->is_answered({"a", 1, 0}));
  EXPECT_TRUE(folder->is_judged({"a", 0, 0}));
  ASSERT_EQ(folder->judgements().size(), 1U);
  EXPECT_EQ(folder->judgements()[0].verdict, judgement("a", task::Passed{}).verdict);
  EXPECT_EQ(folder->judgements()[0].reward, 1);
}

TEST_F(Folder, DropsALineThatAKillCutOffWhereverItWasCut) {
  const std::string whole = json_line(judgement("b", task::Passed{}));
  for (size_t size = 1; size < whole.size(); size += 7) {
    std::filesystem::remove_all(path_);
    {
      ASSERT_TRUE(open()->add(judgement("a", task::Passed{})));
    }
    std::ofstream(path_ / "verdicts.jsonl", std::ios::app) << whole.substr(0, size);
    const auto folder = open();
    ASSERT_NE(folder, nullptr);
    EXPECT_TRUE(folder->is_judged({"a", 0, 0}));
    EXPECT_FALSE(folder->is_judged({"b", 0, 0}));
    ASSERT_TRUE(folder->add(judgement("b", task::Passed{})));
    EXPECT_EQ(BenchFolder::load_judgements(path_)->size(), 2U);
  }
}

TEST_F(Folder, JudgesAgainWhatTheWorldFailed) {
  {
    ASSERT_TRUE(open()->add(judgement("a", task::Infra{"no fork"})));
  }
  {
    const auto folder = open();
    EXPECT_FALSE(folder->is_judged({"a", 0, 0}));
    ASSERT_TRUE(folder->add(judgement("a", task::Passed{})));
  }
  EXPECT_TRUE(open()->is_judged({"a", 0, 0}));
}

TEST_F(Folder, BelongsToOneBenchmark) {
  {
    ASSERT_NE(open(), nullptr);
  }
  const auto other = BenchFolder::open(path_, R"({"samples":4,"suite":"s"})");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(other.error().message, HasSubstr("samples was 1, now 4"));
}

TEST_F(Folder, IsNoFolderOfSomethingElse) {
  std::filesystem::create_directories(path_);
  std::ofstream(path_ / "answers.jsonl") << "mine\n";
  EXPECT_EQ(BenchFolder::open(path_, kSettings).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(BenchFolder::load_judgements(path_).error().code, ErrorCode::kNotFound);
}

TEST_F(Folder, NamesALineInTheMiddleThatIsBroken) {
  {
    ASSERT_TRUE(open()->add(judgement("a", task::Passed{})));
  }
  std::ofstream(path_ / "verdicts.jsonl", std::ios::app) << "garbage\n";
  const auto folder = BenchFolder::open(path_, kSettings);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("verdicts.jsonl: line 2"));
}

// The nearest thing to a full disk that a process can give itself.
TEST_F(Folder, SaysWhenALineDoesNotFit) {
  const auto folder = open();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = folder->add(Answer{{"a", 0, 0}, "text", 3, "stop"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("answers.jsonl: File too large"));
  EXPECT_FALSE(open()->is_answered({"a", 0, 0}));
}

}  // namespace
}  // namespace mc::sample
