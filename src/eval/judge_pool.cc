// SPDX-License-Identifier: Apache-2.0
#include "eval/judge_pool.h"

#include <algorithm>
#include <utility>

#include "core/cancel.h"
#include "core/check.h"
#include "execute/executor.h"

namespace mc::eval {
JudgePool::Lease::Lease() = default;
JudgePool::Lease::Lease(Seat its_seat, std::unique_ptr<execute::Judge> its_judge,
                        bool has_task_open)
    : seat(std::move(its_seat)), judge(std::move(its_judge)), is_open(has_task_open) {}
JudgePool::Lease::Lease(Lease&& other) noexcept = default;
JudgePool::Lease& JudgePool::Lease::operator=(Lease&& other) noexcept = default;
JudgePool::Lease::~Lease() = default;

JudgePool::JudgePool(Bounds bounds) : bounds_(bounds) {
  MC_CHECK(0 < bounds.reused_from && bounds.reused_from <= bounds.idle_max &&
           bounds.idle_max <= bounds.all_max);
}

JudgePool::~JudgePool() {
  clear();
  MC_CHECK(num_seats_ == 0);  // A judge in use would free its seat in a pool that is gone.
}

bool JudgePool::has(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(idle_, key, &Idle::key) != idle_.end();
}

JudgePool::Lease JudgePool::take(const std::string& key, bool may_wait) {
  std::unique_lock lock(mutex_);
  // A full pool without idle judges has something to lend only after give_back() or free_seat().
  if (may_wait) {
    changed_.wait(lock, this_cancellation(), [&] { return !idle_.empty() || !is_full(); });
  }
  auto it = std::ranges::find(idle_, key, &Idle::key);
  const bool is_open = it != idle_.end();
  if (!is_open && is_full()) it = idle_.begin();
  if (it == idle_.end()) {
    ++num_seats_;
    return {Seat(*this), nullptr, false};
  }
  Lease lease = std::move(it->lease);
  MC_CHECK(lease.judge != nullptr);
  lease.is_open = is_open;
  idle_.erase(it);
  return lease;
}

bool JudgePool::is_full() const {
  return idle_.size() >= bounds_.reused_from || num_seats_ >= bounds_.all_max;
}

void JudgePool::give_back(const std::string& key, Lease lease) {
  MC_CHECK(lease.judge != nullptr);
  Lease evicted;  // Destroyed after the lock is released.
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back({key, std::move(lease)});
    MC_CHECK(idle_.size() <= num_seats_);  // Each idle judge has a seat.
    if (idle_.size() > bounds_.idle_max) {
      evicted = std::move(idle_.front().lease);
      idle_.pop_front();
    }
    MC_CHECK(idle_.size() <= bounds_.idle_max);
  }
  changed_.notify_all();
}

void JudgePool::clear() {
  std::list<Idle> ended;  // Destroyed after the lock is released.
  const std::lock_guard lock(mutex_);
  ended.swap(idle_);
}

void JudgePool::free_seat() {
  {
    const std::lock_guard lock(mutex_);
    MC_CHECK(num_seats_ > 0);
    --num_seats_;
  }
  changed_.notify_all();
}

}  // namespace mc::eval
