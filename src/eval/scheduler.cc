// SPDX-License-Identifier: Apache-2.0
#include "eval/scheduler.h"

#include "core/check.h"

namespace mc::eval {

Scheduler::Scheduler(const std::vector<int64_t>& capacities,
                     std::vector<std::optional<DeviceLock>> locks)
    : locks_(std::move(locks)), schedule_(capacities) {
  MC_CHECK(locks_.size() <= capacities.size());
  locks_.resize(capacities.size());
}

Scheduler::Hold Scheduler::take(const Schedule::Request& wanted) {
  std::unique_lock mutex(mutex_);
  const Schedule::Id id = schedule_.request(wanted);
  granted_.wait(mutex, [&] { return schedule_.is_granted(id); });
  const size_t device = schedule_.device_of(id);
  // The mutex is released first, because other processes may hold the lock for long.
  mutex.unlock();
  MC_CHECK(device < locks_.size());
  const auto& lock = locks_[device];
  return {std::unique_ptr<Scheduler, Release>(this, {id}), device,
          wanted.turn && lock ? lock->take(*wanted.turn) : DeviceLock::Hold()};
}

void Scheduler::release(Schedule::Id id) {
  const std::lock_guard lock(mutex_);
  if (!schedule_.release(id).empty()) granted_.notify_all();
}

}  // namespace mc::eval
