// SPDX-License-Identifier: Apache-2.0
#include "service/queue.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cancel.h"

namespace mc::service {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

Queue::Answer verdict_of(task::Outcome outcome) {
  task::Verdict verdict;
  verdict.outcome = std::move(outcome);
  return eval::Preparation(std::move(verdict));
}

Queue::Answer passed() { return verdict_of(task::Passed{}); }

// Records the reply to each request by name: "answer", "cancelled" or "late".
class Replies {
 public:
  Queue::Done of(const std::string& name) {
    return [this, name](const Queue::Reply& reply) {
      const auto* dropped = std::get_if<Queue::Dropped>(&reply);
      const std::string word = dropped == nullptr                       ? "answer"
                               : *dropped == Queue::Dropped::kCancelled ? "cancelled"
                                                                        : "late";
      const std::lock_guard lock(mutex_);
      replies_.emplace_back(name + " " + word);
    };
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return replies_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> replies_;
};

// A job that runs until release or cancellation.
class Blocker {
 public:
  Queue::Work work(const std::string& key) {
    return {key, 0, {}, [this] {
              started_.count_down();
              while (!go_ && !is_cancelled()) std::this_thread::yield();
              was_cancelled_ = is_cancelled();
              return passed();
            }};
  }
  void await_start() { started_.wait(); }
  void let_go() { go_ = true; }
  bool was_cancelled() const { return was_cancelled_; }

 private:
  std::latch started_{1};
  std::atomic<bool> go_ = false;
  std::atomic<bool> was_cancelled_ = false;
};

using Submit = std::function<Queue::Ticket(const std::string& key, int priority)>;

// The order in which one thread runs the jobs that `fill` submits while another job runs.
std::vector<std::string> order_of(const std::function<void(Queue& queue, const Submit&)>& fill) {
  std::vector<std::string> order;
  size_t num_submitted = 1;
  Replies replies;
  {
    Queue queue(1);
    Blocker blocker;
    queue.submit(blocker.work("first"), replies.of("first"));
    blocker.await_start();
    fill(queue, [&](const std::string& key, int priority) {
      ++num_submitted;
      const auto note = [&order, key] {
        order.push_back(key);
        return passed();
      };
      return queue.submit({key, priority, {}, note}, replies.of(key));
    });
    blocker.let_go();
  }
  EXPECT_EQ(replies.all().size(), num_submitted);
  return order;
}

TEST(Queue, RunsByPriorityAndThenByArrival) {
  const auto order = order_of([](Queue&, const Submit& submit) {
    for (const auto& [key, priority] :
         {std::pair{"b", 0}, {"c", -1}, {"a", 7}, {"d", 0}, {"e", 7}}) {
      submit(key, priority);
    }
  });
  EXPECT_THAT(order, ElementsAre("a", "e", "b", "d", "c"));
}

TEST(Queue, RunsEqualRequestsOnceAndRepliesToEach) {
  std::atomic<int> runs = 0;
  Replies replies;
  {
    Queue queue(2);
    Blocker first, second;
    queue.submit(first.work("x"), replies.of("x"));
    queue.submit(second.work("y"), replies.of("y"));
    first.await_start();
    second.await_start();
    for (const char* name : {"a", "b", "c"}) {
      queue.submit({"same",
                    0,
                    {},
                    [&runs] {
                      ++runs;
                      return passed();
                    }},
                   replies.of(name));
    }
    first.let_go();
    second.let_go();
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(replies.all().size(), 5u);
}

TEST(Queue, ARequestThatJoinsRaisesThePriorityOfItsJob) {
  const auto order = order_of([](Queue&, const Submit& submit) {
    submit("low", 0);
    submit("middle", 1);
    submit("low", 2);
  });
  EXPECT_THAT(order, ElementsAre("low", "middle"));
}

TEST(Queue, ACancelledRequestNoLongerRaisesThePriorityOfItsJob) {
  const auto order = order_of([](Queue& queue, const Submit& submit) {
    submit("middle", 1);
    submit("low", 0);
    queue.cancel(submit("low", 2));
  });
  EXPECT_THAT(order, ElementsAre("middle", "low"));
}

TEST(Queue, CancelsARunningJobOnceItHasNoRequest) {
  Replies replies;
  Queue queue(1);
  Blocker blocker;
  const auto one = queue.submit(blocker.work("x"), replies.of("one"));
  blocker.await_start();
  const auto other = queue.submit(blocker.work("x"), replies.of("other"));
  queue.cancel(one);
  EXPECT_THAT(replies.all(), ElementsAre("one cancelled"));
  EXPECT_FALSE(blocker.was_cancelled());
  queue.cancel(other);
  queue.cancel(other);  // No effect after its reply.
  queue.wait_until_at_most(0);
  std::promise<void> later;
  queue.submit({"y", 0, {}, passed}, [&](const auto&) { later.set_value(); });
  later.get_future().wait();  // The only thread is free again.
  EXPECT_TRUE(blocker.was_cancelled());
  EXPECT_THAT(replies.all(), ElementsAre("one cancelled", "other cancelled"));
}

TEST(Queue, NeverRunsAJobThatWasCancelledWhileItWaited) {
  Replies replies;
  std::atomic<bool> has_run = false;
  {
    Queue queue(1);
    Blocker blocker;
    queue.submit(blocker.work("x"), replies.of("x"));
    blocker.await_start();
    queue.cancel(queue.submit({"y",
                               0,
                               {},
                               [&] {
                                 has_run = true;
                                 return passed();
                               }},
                              replies.of("y")));
    blocker.let_go();
  }
  EXPECT_FALSE(has_run);
  EXPECT_THAT(replies.all(), ElementsAre("y cancelled", "x answer"));
}

TEST(Queue, RepliesLateAtTheDeadlineAndCancelsTheJob) {
  Replies replies;
  Queue queue(1);
  Blocker blocker;
  Queue::Work work = blocker.work("x");
  work.deadline = Queue::Clock::now() + milliseconds(20);
  queue.submit(std::move(work), replies.of("x"));
  queue.wait_until_at_most(0);
  EXPECT_THAT(replies.all(), ElementsAre("x late"));
}

TEST(Queue, RepeatsAJobWithAnInfraAnswer) {
  for (const int failures : {0, 1, 2, 5}) {
    int runs = 0;
    std::promise<std::string> outcome;
    {
      Queue queue(1);
      queue.submit(
          {"x",
           0,
           {},
           [&] { return ++runs <= failures ? verdict_of(task::Infra{"lost"}) : passed(); }},
          [&](const Queue::Reply& reply) {
            const auto& answer = *std::get<Queue::Answered>(reply).answer;
            outcome.set_value(task::outcome_name(std::get<task::Verdict>(*answer).outcome));
          });
    }
    EXPECT_EQ(runs, std::min(failures + 1, Queue::kTriesMax));
    EXPECT_EQ(outcome.get_future().get(), failures < Queue::kTriesMax ? "pass" : "infra");
  }
}

// Threads submit, cancel and set deadlines at random: each request gets one reply, and each answer
// belongs to the request's own key.
TEST(Queue, GivesEachRequestOneReplyUnderRandomCalls) {
  const unsigned seed = 20261126;
  SCOPED_TRACE(seed);
  constexpr int kThreads = 4, kRequests = 500;
  std::vector<std::atomic<int>> replies(kThreads * kRequests);
  std::atomic<int> wrong = 0;
  {
    Queue queue(3);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937 random(seed + static_cast<unsigned>(thread));
        for (int i = 0; i < kRequests; ++i) {
          const std::string key = std::to_string(random() % 20);
          Queue::Work work{key, static_cast<int>(random() % 3), {}, [key] {
                             task::Verdict verdict;
                             verdict.task = key;
                             std::this_thread::yield();
                             return Queue::Answer(eval::Preparation(std::move(verdict)));
                           }};
          if (random() % 4 == 0) {
            work.deadline = Queue::Clock::now() + std::chrono::microseconds(random() % 200);
          }
          const auto ticket = queue.submit(std::move(work), [&, key, thread,
                                                             i](const Queue::Reply& reply) {
            ++replies[static_cast<size_t>(thread * kRequests + i)];
            const auto* answered = std::get_if<Queue::Answered>(&reply);
            if (answered != nullptr && std::get<task::Verdict>(**answered->answer).task != key) {
              ++wrong;
            }
          });
          if (random() % 4 == 0) queue.cancel(ticket);
        }
      });
    }
  }
  EXPECT_TRUE(std::ranges::all_of(replies, [](const auto& count) { return count == 1; }));
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace mc::service
