// SPDX-License-Identifier: Apache-2.0
#include "eval/judge_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/cancel.h"
#include "core/check.h"
#include "execute/executor.h"

namespace mc::eval {
namespace {

constexpr std::chrono::milliseconds kLook(100);  // The interval of checks for a cancellation.

}  // namespace

JudgePool::Lent::Lent() = default;
JudgePool::Lent::Lent(Seat its_seat, std::unique_ptr<execute::Judge> its_judge, bool has_task_open)
    : seat(std::move(its_seat)), judge(std::move(its_judge)), is_open(has_task_open) {}
JudgePool::Lent::Lent(Lent&& other) noexcept = default;
JudgePool::Lent& JudgePool::Lent::operator=(Lent&& other) noexcept = default;
JudgePool::Lent::~Lent() = default;

JudgePool::JudgePool(Bounds bounds) : bounds_(bounds) {
  MC_CHECK(0 < bounds.reused_from && bounds.reused_from <= bounds.idle_max &&
           bounds.idle_max <= bounds.all_max);
}

JudgePool::~JudgePool() { clear(); }

bool JudgePool::has(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(idle_, key, &Idle::key) != idle_.end();
}

JudgePool::Lent JudgePool::take(const std::string& key, bool may_wait) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool is_full = idle_.size() >= bounds_.reused_from || num_seats_ >= bounds_.all_max;
    auto it = std::ranges::find(idle_, key, &Idle::key);
    const bool is_open = it != idle_.end();
    if (!is_open && is_full) it = idle_.begin();
    if (it != idle_.end() && (is_open || is_full)) {
      Lent lent = std::move(it->lent);
      lent.is_open = is_open;
      idle_.erase(it);
      return lent;
    }
    if (!is_full || !may_wait || is_cancelled()) {
      ++num_seats_;
      return {Seat(*this), nullptr, false};
    }
    changed_.wait_for(lock, kLook);
  }
}

void JudgePool::give_back(const std::string& key, Lent lent) {
  MC_CHECK(lent.judge != nullptr);
  Lent evicted;  // Destroyed after the lock is released.
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back({key, std::move(lent)});
    if (idle_.size() > bounds_.idle_max) {
      evicted = std::move(idle_.front().lent);
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
