// SPDX-License-Identifier: Apache-2.0
//
// Queue: the order in which requests are judged, and by how many threads at once.
//
// Rules, in the order of their numbers:
//   1. A request gets exactly one reply: its answer, or why there is none.
//   2. Requests with equal keys that are here together share one job; it runs once.
//   3. The next job is the one with the highest priority of its requests; among equals, the first.
//   4. A job without a request is dropped: one that waits never runs, one that runs is cancelled
//      (core/cancel.h) and its answer is thrown away.
//   5. An answer of infra is asked for again, kTriesMax times in all, before it is a reply.
//
//   Queue queue(jobs);
//   const Queue::Ticket ticket = queue.submit({.key = key, .run = …}, [](const Queue::Reply& reply)
//   {…}); queue.cancel(ticket);
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
    std::chrono::duration<double> taken{0};  // The time that the job ran.
  };
  using Reply = std::variant<Answered, Dropped>;
  // Called once, without the queue's lock, by one of its threads or by the caller of cancel().
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
  // Does nothing for a request that has its reply.
  void cancel(Ticket ticket);
  // Waits until at most `num` requests have no reply.
  void wait_until_at_most(size_t num);

 private:
  struct Job;
  // The place of a job that waits: highest priority first, then the order of arrival.
  using Place = std::pair<int64_t, Ticket>;
  struct Asker {
    Job* job = nullptr;
    Place place;
    std::optional<Clock::time_point> deadline;
    Done done;
  };
  struct Job {
    std::string key;
    Place place;
    std::function<Answer()> run;
    std::set<Ticket> askers;
    bool is_running = false;
    std::stop_source stop{};
  };

  void work();
  void watch_deadlines(const std::stop_token& stop);
  std::vector<Done> take_askers(Job& job);
  std::optional<Done> drop(Ticket ticket);
  void place(Job& job);
  void forget(Job& job);

  std::mutex mutex_;  // Guards all but the threads.
  std::condition_variable_any changed_;
  Ticket next_ticket_ = 1;
  std::map<Ticket, Asker> askers_;
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
