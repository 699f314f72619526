// SPDX-License-Identifier: Apache-2.0
#include "eval/judge_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "execute/executor.h"
#include "worker/fakes/fake_worker.h"

namespace mc::eval {
namespace {

class JudgePoolTest : public testing::Test {
 protected:
  // A new judge, which has no task open.
  JudgePool::Lease made(JudgePool& pool, const std::string& key) {
    JudgePool::Lease lease = pool.take(key, /*may_wait=*/false);
    EXPECT_EQ(lease.judge, nullptr);
    lease.judge = std::make_unique<execute::Judge>(worker_.session());
    return lease;
  }
  // Adds `num` idle judges, each with a task of its own.
  void keep(JudgePool& pool, size_t num) {
    std::vector<JudgePool::Lease> lease;
    for (size_t i = 0; i < num; ++i) lease.push_back(made(pool, task(i)));
    for (size_t i = 0; i < num; ++i) pool.give_back(task(i), std::move(lease[i]));
  }
  static std::string task(size_t i) { return "task " + std::to_string(i); }

  worker::FakeWorker worker_;
  JudgePool pool_;
};

TEST_F(JudgePoolTest, LendsTheJudgeThatHasTheTaskOpen) {
  keep(pool_, 2);
  EXPECT_EQ(pool_.take("none", true).judge, nullptr);
  const auto taken = pool_.take(task(1), true);
  EXPECT_TRUE(taken.is_open);
  EXPECT_EQ(pool_.take(task(1), true).judge, nullptr);
  EXPECT_EQ(worker_.num_alive(), 2);
}

TEST_F(JudgePoolTest, KeepsSeveralJudgesOfOneTask) {
  auto one = made(pool_, "one"), other = made(pool_, "one");
  pool_.give_back("one", std::move(one));
  pool_.give_back("one", std::move(other));
  const auto first = pool_.take("one", true), second = pool_.take("one", true);
  EXPECT_NE(first.judge, nullptr);
  EXPECT_NE(second.judge, nullptr);
  EXPECT_NE(first.judge, second.judge);
}

TEST_F(JudgePoolTest, EndsTheLongestIdleJudgeWhereTooManyAreIdle) {
  const size_t num = JudgePool::kOnCpu.idle_max;
  auto last = made(pool_, "last");
  keep(pool_, num);
  pool_.give_back("last", std::move(last));
  EXPECT_EQ(worker_.num_alive(), static_cast<int>(num));
  EXPECT_FALSE(pool_.has(task(0)));
  EXPECT_TRUE(pool_.has(task(1)));
  EXPECT_TRUE(pool_.has("last"));
}

TEST_F(JudgePoolTest, LendsAnotherTasksJudgeOnlyWhereItIsFull) {
  keep(pool_, JudgePool::kOnCpu.idle_max - 1);
  auto last = made(pool_, "last");
  pool_.give_back("last", std::move(last));
  const auto another = pool_.take("other", true);
  EXPECT_NE(another.judge, nullptr);
  EXPECT_FALSE(another.is_open);
  EXPECT_FALSE(pool_.has(task(0))) << "the one that waited longest";
  EXPECT_EQ(pool_.take("other", true).judge, nullptr);
}

TEST_F(JudgePoolTest, WaitsForAJudgeAtTheBound) {
  JudgePool two({2, 2, 2});
  auto first = made(two, "one"), second = made(two, "two");
  std::jthread returner([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    two.give_back("two", std::move(second));
  });
  const auto third = two.take("three", true);
  EXPECT_NE(third.judge, nullptr);
  EXPECT_FALSE(third.is_open);
  EXPECT_EQ(worker_.num_alive(), 2);
  // A caller that may not wait, or that is cancelled, gets a judge beyond the bound.
  EXPECT_EQ(two.take("four", false).judge, nullptr);
  std::stop_source stop;
  stop.request_stop();
  const CancelScope scope(stop.get_token());
  EXPECT_EQ(two.take("five", true).judge, nullptr);
}

TEST_F(JudgePoolTest, ACancelledCallerStopsWaiting) {
  JudgePool one({1, 1, 1});
  const auto lease = made(one, "one");
  std::stop_source stop;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  const CancelScope scope(stop.get_token());
  EXPECT_EQ(one.take("two", true).judge, nullptr);
}

TEST_F(JudgePoolTest, HasRoomAgainWhereAJudgeEnds) {
  JudgePool one({1, 1, 1});
  std::jthread ender;
  {
    auto lease = std::make_unique<JudgePool::Lease>(made(one, "one"));
    ender = std::jthread([lease = std::move(lease)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      lease.reset();
    });
  }
  EXPECT_EQ(one.take("two", true).judge, nullptr);
  ender.join();
  EXPECT_EQ(worker_.num_alive(), 0);
}

TEST_F(JudgePoolTest, ClearEndsAllIdleJudges) {
  keep(pool_, 3);
  const auto lease = pool_.take(task(1), true);
  pool_.clear();
  EXPECT_EQ(worker_.num_alive(), 1);
  EXPECT_FALSE(pool_.has(task(0)));
}

TEST_F(JudgePoolTest, ServesManyThreads) {
  JudgePool three({3, 3, 3});
  keep(three, 3);  // Created in this thread: a fake worker is not thread-safe.
  std::atomic<int> num_working = 0, num_working_max = 0;
  std::vector<std::jthread> threads;
  for (size_t n = 0; n < 6; ++n) {
    threads.emplace_back([&, n] {
      for (int i = 0; i < 200; ++i) {
        auto mine = three.take(task(n), true);
        ASSERT_NE(mine.judge, nullptr);
        const int working = ++num_working;
        for (int most = num_working_max; most < working;) {
          if (num_working_max.compare_exchange_weak(most, working)) break;
        }
        --num_working;
        three.give_back(task(n), std::move(mine));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(worker_.num_alive(), 3);
  EXPECT_LE(num_working_max, 3);
}

}  // namespace
}  // namespace mc::eval
