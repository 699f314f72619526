// SPDX-License-Identifier: Apache-2.0
#include "service/queue.h"

#include <algorithm>

#include "core/cancel.h"
#include "core/check.h"

namespace mc::service {
namespace {

bool is_infra(const Queue::Answer& answer) {
  if (!answer) return false;
  const auto* verdict = std::get_if<task::Verdict>(&*answer);
  return verdict != nullptr && std::holds_alternative<task::Infra>(verdict->outcome);
}

Queue::Answer run_with_retries(const std::function<Queue::Answer()>& run, std::stop_token stop) {
  const CancelScope scope(std::move(stop));
  Queue::Answer answer = run();
  for (int tries = 1; tries < Queue::kTriesMax && is_infra(answer) && !is_cancelled(); ++tries) {
    answer = run();
  }
  return answer;
}

}  // namespace

Queue::Queue(int num_threads) {
  MC_CHECK(num_threads > 0);
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch_deadlines(stop); });
}

Queue::~Queue() {
  wait_until_at_most(0);
  {
    const std::lock_guard lock(mutex_);
    MC_CHECK(waiters_.empty() && deadlines_.empty());
    is_closing_ = true;
  }
  changed_.notify_all();
}

Queue::Ticket Queue::submit(Work work, Done done) {
  MC_CHECK(work.run && done);
  const std::lock_guard lock(mutex_);
  MC_CHECK(!is_closing_);
  const Ticket ticket = next_ticket_++;
  const Place place{-int64_t{work.priority}, ticket};
  Job*& job = shared_[work.key];
  if (job == nullptr) {
    auto fresh = std::make_unique<Job>(Job{std::move(work.key), place, std::move(work.run), {}});
    job = fresh.get();
    jobs_.emplace(job, std::move(fresh));
    waiting_.emplace(place, job);
  }
  job->waiters.insert(ticket);
  const bool is_new =
      waiters_.emplace(ticket, Waiter{job, place, work.deadline, std::move(done)}).second;
  MC_CHECK(is_new);
  if (!job->is_running) this->place(*job);
  if (work.deadline) deadlines_.emplace(*work.deadline, ticket);
  ++num_open_;
  changed_.notify_all();
  return ticket;
}

void Queue::cancel(Ticket ticket) {
  std::optional<Done> done;
  {
    const std::lock_guard lock(mutex_);
    done = drop(ticket);
  }
  if (!done) return;
  (*done)(Dropped::kCancelled);
  const std::lock_guard lock(mutex_);
  MC_CHECK(num_open_ > 0);
  --num_open_;
  changed_.notify_all();
}

void Queue::wait_until_at_most(size_t num) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return num_open_ <= num; });
}

// Removes a request; nothing where it has its reply already.  REQUIRES: mutex_ is held.
std::optional<Queue::Done> Queue::drop(Ticket ticket) {
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end()) return std::nullopt;
  Waiter waiter = std::move(found->second);
  waiters_.erase(found);
  if (waiter.deadline) MC_CHECK(deadlines_.erase({*waiter.deadline, ticket}) == 1);
  Job& job = *waiter.job;
  MC_CHECK(job.waiters.erase(ticket) == 1);
  if (!job.waiters.empty() && !job.is_running) place(job);
  if (job.waiters.empty()) {
    job.stop.request_stop();
    shared_.erase(job.key);
    if (!job.is_running) forget(job);
  }
  return std::move(waiter.done);
}

// Sorts the job by its first request.  REQUIRES: mutex_ is held, the job waits and has a request.
void Queue::place(Job& job) {
  MC_CHECK(!job.waiters.empty() && !job.is_running);
  waiting_.erase(job.place);
  job.place = waiters_.at(*job.waiters.begin()).place;
  for (const Ticket ticket : job.waiters) {
    job.place = std::min(job.place, waiters_.at(ticket).place);
  }
  MC_CHECK(waiting_.emplace(job.place, &job).second);
}

// REQUIRES: mutex_ is held, and the job has no request.
void Queue::forget(Job& job) {
  MC_CHECK(job.waiters.empty());
  waiting_.erase(job.place);
  MC_CHECK(jobs_.erase(&job) == 1);
}

// REQUIRES: mutex_ is held.
std::vector<Queue::Done> Queue::take_waiters(Job& job) {
  std::vector<Done> dones;
  while (!job.waiters.empty()) dones.push_back(*drop(*job.waiters.begin()));
  return dones;
}

void Queue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty() || is_closing_; });
    if (waiting_.empty()) return;
    Job& job = *waiting_.begin()->second;
    MC_CHECK(!job.is_running && !job.waiters.empty());
    waiting_.erase(waiting_.begin());
    job.is_running = true;
    lock.unlock();
    const Clock::time_point start = Clock::now();
    const Answer answer = run_with_retries(job.run, job.stop.get_token());
    const Answered answered{&answer, Clock::now() - start};
    lock.lock();
    const std::vector<Done> dones = take_waiters(job);
    forget(job);
    lock.unlock();
    for (const Done& done : dones) done(answered);
    lock.lock();
    MC_CHECK(num_open_ >= dones.size());
    num_open_ -= dones.size();
    changed_.notify_all();
  }
}

void Queue::watch_deadlines(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (deadlines_.empty()) {
      changed_.wait(lock, stop, [&] { return !deadlines_.empty(); });
      continue;
    }
    const auto [deadline, ticket] = *deadlines_.begin();
    if (Clock::now() < deadline) {
      changed_.wait_until(lock, stop, deadline, [&] {
        return deadlines_.empty() || deadlines_.begin()->first < deadline;
      });
      continue;
    }
    const Done done = *drop(ticket);
    lock.unlock();
    done(Dropped::kLate);
    lock.lock();
    MC_CHECK(num_open_ > 0);
    --num_open_;
    changed_.notify_all();
  }
}

}  // namespace mc::service
