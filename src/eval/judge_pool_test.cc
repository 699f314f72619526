// SPDX-License-Identifier: Apache-2.0
#include "eval/judge_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "execute/executor.h"
#include "worker/fakes/fake_worker.h"

namespace mc::eval {
namespace {

class JudgePoolTest : public testing::Test {
 protected:
  std::unique_ptr<execute::Judge> judge() {
    return std::make_unique<execute::Judge>(worker_.session());
  }
  void keep(int num) {
    for (int i = 0; i < num; ++i) pool_.give_back("task " + std::to_string(i), judge());
  }

  worker::FakeWorker worker_;
  JudgePool pool_;
};

TEST_F(JudgePoolTest, LendsTheJudgeThatHasTheTaskOpen) {
  auto one = judge();
  const execute::Judge* kept = one.get();
  pool_.give_back("one", std::move(one));
  pool_.give_back("other", judge());
  EXPECT_EQ(pool_.take("none"), nullptr);
  const auto taken = pool_.take("one");
  EXPECT_EQ(taken.get(), kept);
  EXPECT_EQ(pool_.take("one"), nullptr);
  EXPECT_EQ(worker_.num_alive(), 2);
}

TEST_F(JudgePoolTest, KeepsSeveralOfOneTask) {
  pool_.give_back("one", judge());
  pool_.give_back("one", judge());
  const auto first = pool_.take("one");
  const auto second = pool_.take("one");
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_NE(first, second);
}

TEST_F(JudgePoolTest, EndsTheOneThatWaitedLongestWhereTooManyWait) {
  keep(JudgePool::kIdleMax);
  EXPECT_EQ(worker_.num_alive(), static_cast<int>(JudgePool::kIdleMax));
  pool_.give_back("last", judge());
  EXPECT_EQ(worker_.num_alive(), static_cast<int>(JudgePool::kIdleMax));
  EXPECT_EQ(pool_.take("task 0"), nullptr);
  EXPECT_NE(pool_.take("task 1"), nullptr);
  EXPECT_NE(pool_.take("last"), nullptr);
}

TEST_F(JudgePoolTest, LendsAnotherTasksJudgeOnlyWhereItIsFull) {
  keep(JudgePool::kIdleMax - 1);
  EXPECT_EQ(pool_.take_any_where_full(), nullptr);
  auto last = judge();
  pool_.give_back("last", std::move(last));
  EXPECT_NE(pool_.take_any_where_full(), nullptr);
  EXPECT_EQ(pool_.take("task 0"), nullptr) << "the one that waited longest";
  EXPECT_EQ(pool_.take_any_where_full(), nullptr);
}

TEST_F(JudgePoolTest, LendsAnotherTasksJudgeSoonerWhereFewMayWait) {
  JudgePool few(2);
  few.give_back("one", judge());
  EXPECT_EQ(few.take_any_where_full(), nullptr);
  few.give_back("two", judge());
  EXPECT_NE(few.take_any_where_full(), nullptr);
  EXPECT_NE(few.take("two"), nullptr);
}

TEST_F(JudgePoolTest, EndsAllThatWait) {
  keep(3);
  const auto lent = pool_.take("task 1");
  pool_.clear();
  EXPECT_EQ(worker_.num_alive(), 1);
  EXPECT_EQ(pool_.take("task 0"), nullptr);
}

TEST_F(JudgePoolTest, ServesManyThreads) {
  keep(4);  // Made here: a fake worker is of one thread.
  std::vector<std::jthread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([this, n] {
      const std::string key = "task " + std::to_string(n);
      for (int i = 0; i < 200; ++i) {
        auto mine = pool_.take(key);
        if (mine != nullptr) pool_.give_back(key, std::move(mine));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(worker_.num_alive(), 4);
}

}  // namespace
}  // namespace mc::eval
