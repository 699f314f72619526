// SPDX-License-Identifier: Apache-2.0
#include "worker/warm_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "worker/session_impl.h"

namespace mc::worker {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kTestTimeMax{20};
constexpr milliseconds kNoTime{0};

struct Made {
  Session session;
  pid_t init;  // The child's process, to test whether it exists.
};

// A child without a role: it waits to be killed, or ends at once.
enum class Life { kLong, kOver };

Result<Made> make(Life life) {
  MC_TRY(auto output, OutputTail::create(kOutputTailBytes), "test");
  MC_TRY(auto ends, Channel::create_pair(), "test");
  MC_TRY(sandbox::Child child,
         sandbox::Child::start(sandbox::lenient({}), std::array{ends.second.get()},
                               [life](const auto&) { return life == Life::kLong ? pause() : 0; }),
         "test");
  const pid_t init = child.init();
  Session session(std::unique_ptr<Session::Impl>(new Session::Impl{
      std::move(output.first), std::move(ends.first), handle_of(std::move(child))}));
  return Made{std::move(session), init};
}

// Spawns children and records them; fails, or spawns dead children, on demand.
class Spawner {
 public:
  WarmPool::Spawn spawn() {
    return [this]() -> Result<Session> {
      const size_t index = num_calls_++;
      if (fails_.contains(index)) return Error{ErrorCode::kUnavailable, "as the test wants"};
      MC_TRY(Made made, make(dies_.contains(index) ? Life::kOver : Life::kLong), "spawner");
      if (dies_.contains(index)) made.session.has_news(kTestTimeMax);
      const std::lock_guard lock(mutex_);
      inits_.push_back(made.init);
      return std::move(made.session);
    };
  }

  void fail_at(std::set<size_t> calls) { fails_ = std::move(calls); }
  void die_at(std::set<size_t> calls) { dies_ = std::move(calls); }
  size_t num_calls() const { return num_calls_; }

  size_t num_running() const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(
        std::ranges::count_if(inits_, [](pid_t init) { return kill(init, 0) == 0; }));
  }

 private:
  // Constant once `spawn` is in use.
  std::set<size_t> fails_;
  std::set<size_t> dies_;

  std::atomic<size_t> num_calls_ = 0;
  mutable std::mutex mutex_;
  std::vector<pid_t> inits_;  // Guarded by mutex_.
};

// True if `fact` becomes true in time.
bool comes_true(const std::function<bool()>& fact) {
  const auto deadline = std::chrono::steady_clock::now() + kTestTimeMax;
  while (!fact()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Takes a child as soon as one is ready.
std::optional<Session> take_soon(WarmPool& spares) {
  std::optional<Session> taken;
  comes_true([&] {
    taken = spares.take();
    return taken.has_value();
  });
  return taken;
}

TEST(WarmPool, KeepsTheGivenNumber) {
  Spawner spawner;
  WarmPool spares(2, spawner.spawn());
  EXPECT_TRUE(comes_true([&] { return spawner.num_running() == 2; }));
  EXPECT_EQ(spawner.num_calls(), 2u);
}

TEST(WarmPool, ReturnsALiveChildAndSpawnsAnother) {
  Spawner spawner;
  WarmPool spares(1, spawner.spawn());
  auto first = take_soon(spares);
  auto second = take_soon(spares);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(first->has_news(kNoTime));
  EXPECT_FALSE(second->has_news(kNoTime));
  EXPECT_TRUE(comes_true([&] { return spawner.num_running() == 3; }));
}

TEST(WarmPool, HasNothingWhereNoneIsReady) {
  std::binary_semaphore may_spawn(0);
  WarmPool spares(1, [&]() -> Result<Session> {
    may_spawn.acquire();
    return Error{ErrorCode::kUnavailable, "as the test wants"};
  });
  EXPECT_FALSE(spares.take());
  may_spawn.release();
}

TEST(WarmPool, ReplacesOneThatDiedWhileItWaited) {
  Spawner spawner;
  spawner.die_at({0, 1});
  WarmPool spares(2, spawner.spawn());
  auto taken = take_soon(spares);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->has_news(kNoTime));
  EXPECT_GE(spawner.num_calls(), 3u);
}

TEST(WarmPool, PausesAfterAFailureUntilTheNextCall) {
  Spawner spawner;
  spawner.fail_at({0});
  WarmPool spares(1, spawner.spawn());
  EXPECT_TRUE(comes_true([&] { return spawner.num_calls() == 1; }));
  EXPECT_TRUE(make(Life::kOver));  // Takes longer than a second attempt would.
  EXPECT_EQ(spawner.num_calls(), 1u);
  EXPECT_TRUE(take_soon(spares));
}

TEST(WarmPool, LeavesNoProcessBehind) {
  Spawner spawner;
  {
    WarmPool spares(3, spawner.spawn());
    EXPECT_TRUE(comes_true([&] { return spawner.num_running() == 3; }));
  }
  EXPECT_EQ(spawner.num_running(), 0u);
}

TEST(WarmPool, SpawnsNoMoreOnceItStops) {
  constexpr size_t kFarTooMany = 1000;
  Spawner spawner;
  {
    WarmPool spares(kFarTooMany, spawner.spawn());
    EXPECT_TRUE(comes_true([&] { return spawner.num_calls() > 0; }));
  }
  EXPECT_LT(spawner.num_calls(), kFarTooMany);
  EXPECT_EQ(spawner.num_running(), 0u);
}

TEST(WarmPool, ServesSeveralThreads) {
  constexpr size_t kThreads = 4;
  constexpr size_t kTakes = 3;
  constexpr size_t kKept = 2;
  Spawner spawner;
  std::vector<std::vector<Session>> taken(kThreads);
  {
    WarmPool spares(kKept, spawner.spawn());
    std::vector<std::jthread> threads;
    for (auto& sessions : taken) {
      threads.emplace_back([&] {
        while (sessions.size() < kTakes) {
          auto session = take_soon(spares);
          if (!session) return;
          sessions.push_back(std::move(*session));
        }
      });
    }
  }
  for (auto& sessions : taken) {
    EXPECT_EQ(sessions.size(), kTakes);
    for (Session& session : sessions) EXPECT_FALSE(session.has_news(kNoTime));
  }
  EXPECT_EQ(spawner.num_running(), kThreads * kTakes);
  EXPECT_LE(spawner.num_calls(), kThreads * kTakes + kKept);
}

TEST(WarmPool, SpawnsOneForEachWaitingCaller) {
  Spawner spawner;
  WarmPool spares(0, spawner.spawn());
  EXPECT_FALSE(spares.take()) << "none is kept";
  std::vector<std::jthread> threads;
  std::atomic<int> num_served = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (auto session = spares.wait()) ++num_served;
    });
  }
  threads.clear();
  EXPECT_EQ(num_served, 4);
  EXPECT_EQ(spawner.num_calls(), 4U);
}

TEST(WarmPool, ReturnsAFailureToWaitingCallers) {
  Spawner spawner;
  spawner.fail_at({0});
  WarmPool spares(0, spawner.spawn());
  const auto none = spares.wait();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "as the test wants");
  EXPECT_TRUE(spares.wait()) << "who comes later has another try";
}

TEST(WarmPool, SkipsADeadChildForAWaitingCaller) {
  Spawner spawner;
  spawner.die_at({0});
  WarmPool spares(1, spawner.spawn());
  ASSERT_TRUE(comes_true([&] { return spawner.num_calls() == 1; }));
  auto session = spares.wait();
  ASSERT_TRUE(session);
  EXPECT_FALSE(session->has_news(kNoTime));
}

}  // namespace
}  // namespace mc::worker
