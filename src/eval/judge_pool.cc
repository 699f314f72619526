// SPDX-License-Identifier: Apache-2.0
#include "eval/judge_pool.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "execute/executor.h"

namespace mc::eval {

JudgePool::JudgePool(size_t idle_max) : idle_max_(idle_max) { MC_CHECK(idle_max > 0); }
JudgePool::JudgePool(JudgePool&& other) noexcept
    : idle_max_(other.idle_max_), idle_(std::move(other.idle_)) {}
JudgePool::~JudgePool() = default;

bool JudgePool::has(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(idle_, key, &Idle::key) != idle_.end();
}

std::unique_ptr<execute::Judge> JudgePool::take(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find(idle_, key, &Idle::key);
  if (it == idle_.end()) return nullptr;
  std::unique_ptr<execute::Judge> judge = std::move(it->judge);
  idle_.erase(it);
  return judge;
}

std::unique_ptr<execute::Judge> JudgePool::take_any_where_full() {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < idle_max_) return nullptr;
  std::unique_ptr<execute::Judge> judge = std::move(idle_.front().judge);
  idle_.pop_front();
  return judge;
}

void JudgePool::clear() {
  std::list<Idle> ended;  // Destroyed after the lock is released.
  const std::lock_guard lock(mutex_);
  ended.swap(idle_);
}

void JudgePool::give_back(const std::string& key, std::unique_ptr<execute::Judge> judge) {
  MC_CHECK(judge != nullptr);
  std::unique_ptr<execute::Judge> evicted;  // Destroyed after the lock is released.
  const std::lock_guard lock(mutex_);
  idle_.push_back({key, std::move(judge)});
  if (idle_.size() > idle_max_) {
    evicted = std::move(idle_.front().judge);
    idle_.pop_front();
  }
  MC_CHECK(idle_.size() <= idle_max_);
}

}  // namespace mc::eval
