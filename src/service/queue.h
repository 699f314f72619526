// SPDX-License-Identifier: Apache-2.0
//
// Queue: orders requests and judges them with a number of threads.
//
// Rules:
//   1. A request gets exactly one reply: its answer, or the reason why there is none.
//   2. Simultaneous requests with equal keys share one job, which runs once.
//   3. The next job is the one whose requests have the highest priority; among equals, the oldest.
//   4. A job without a request is dropped: a waiting job never runs; a running job is cancelled
//      (core/cancel.h) and its answer discarded.
//   5. A job with an infra answer is repeated, for at most kTriesMax runs, before it is a reply.
//
//   Queue queue(jobs);
//   const Queue::Ticket ticket = queue.submit({.key = key, .run = …}, [](const Queue::Reply& reply)
//   {…});
//   queue.cancel(ticket);
#ifndef MC_SERVICE_QUEUE_H_
#define MC_SERVICE_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.h"
#include "eval/pipeline.h"

namespace mc::service {

class Queue {
 public:
  static constexpr int kTriesMax = 3;
  using Clock = std::chrono::steady_clock;
  using Ticket = uint64_t;
  using Answer = Result<eval::Preparation>;
  enum class Dropped { kCancelled, kLate };
  struct Answered {
    const Answer* answer = nullptr;          // All requests of the job share it during Done.
    std::chrono::duration<double> taken{0};  // The duration of the job.
  };
  using Reply = std::variant<Answered, Dropped>;
  // Called once, without the queue's lock, in a thread of the queue or of the caller of cancel().
  using Done = std::function<void(const Reply& reply)>;

  struct Work {
    std::string key;
    int priority = 0;
    std::optional<Clock::time_point> deadline;
    std::function<Answer()> run;  // Called under a CancelScope, by any thread of the queue.
  };

  explicit Queue(int num_threads);
  // Waits for all replies.
  ~Queue();

  Ticket submit(Work work, Done done);
  // Cancels a request; no effect after its reply.
  void cancel(Ticket ticket);
  // Waits until at most `num` requests are without a reply.
  void wait_until_at_most(size_t num);

 private:
  struct Job;
  // The sort key of a waiting job: highest priority first, then the order of arrival.
  using Place = std::pair<int64_t, Ticket>;
  struct Waiter {
    Job* job = nullptr;
    Place place;
    std::optional<Clock::time_point> deadline;
    Done done;
  };
  struct Job {
    std::string key;
    Place place;
    std::function<Answer()> run;
    std::set<Ticket> waiters;
    bool is_running = false;
    std::stop_source stop{};
  };

  void work();
  void watch_deadlines(const std::stop_token& stop);
  std::vector<Done> take_waiters(Job& job);
  std::optional<Done> drop(Ticket ticket);
  void place(Job& job);
  void forget(Job& job);

  std::mutex mutex_;  // Guards all members but the threads.
  std::condition_variable_any changed_;
  Ticket next_ticket_ = 1;
  std::map<Ticket, Waiter> waiters_;
  std::set<std::pair<Clock::time_point, Ticket>> deadlines_;
  std::map<std::string, Job*> shared_;  // For each key, the job that a new request joins.
  std::map<Place, Job*> waiting_;
  std::map<Job*, std::unique_ptr<Job>> jobs_;
  size_t num_open_ = 0;  // Requests whose Done has not returned.
  bool is_closing_ = false;
  std::vector<std::jthread> threads_;
  std::jthread watcher_;
};

}  // namespace mc::service

#endif  // MC_SERVICE_QUEUE_H_
