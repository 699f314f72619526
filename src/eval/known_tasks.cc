// SPDX-License-Identifier: Apache-2.0
#include "eval/known_tasks.h"

#include <chrono>

#include "core/cancel.h"
#include "core/check.h"

namespace mc::eval {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};  // At the cancellation of the request.

}  // namespace

std::unique_ptr<KnownTasks::Turn> KnownTasks::take_turn(const std::string& key) {
  std::unique_lock lock(mutex_);
  while (looked_into_.contains(key) && !is_cancelled()) changed_.wait_for(lock, kLookEvery);
  if (known_.contains(key) || is_cancelled()) return nullptr;
  looked_into_.insert(key);
  return std::make_unique<Turn>(*this, key);
}

KnownTask KnownTasks::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? KnownTask() : found->second;
}

void KnownTasks::learn(const std::string& key, KnownTask known) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kTasksMax && !known_.contains(key)) known_.erase(known_.begin());
  known_.insert_or_assign(key, std::move(known));
}

KnownTasks::Turn::~Turn() {
  {
    const std::lock_guard lock(tasks_.mutex_);
    MC_CHECK(tasks_.looked_into_.erase(key_) == 1);
  }
  tasks_.changed_.notify_all();
}

}  // namespace mc::eval
