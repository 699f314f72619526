// SPDX-License-Identifier: Apache-2.0
//
// Scheduler: a Schedule for threads, which block until their requests are granted.  Thread-safe.
// Where a device has a lock (device_lock.h), its turns exclude those of other processes, too.
//
//   Scheduler scheduler({capacity_of(device.bytes)});
//   const Scheduler::Hold place = scheduler.take({});  // Until the end of its scope.
//   const DeviceSchedule device{scheduler, place.device};
//   const Scheduler::Hold memory = device.memory(need_of_trials(call, num_shapes));
//   const Scheduler::Hold turn = device.turn(Schedule::Use::kShared);
#ifndef MC_EVAL_SCHEDULER_H_
#define MC_EVAL_SCHEDULER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "eval/device_lock.h"
#include "eval/schedule.h"

namespace mc::eval {

class Scheduler {
 public:
  struct Release {
    Schedule::Id id;
    void operator()(Scheduler* scheduler) const { scheduler->release(id); }
  };
  struct Hold {
    std::unique_ptr<Scheduler, Release> granted;
    size_t device;
    DeviceLock::Hold lock;  // Released first: another process may have the next turn.
  };

  // The memory of each device, as for Schedule, and the device's lock, where it has one.
  explicit Scheduler(const std::vector<int64_t>& capacities,
                     std::vector<std::optional<DeviceLock>> locks = {});

  // Blocks until the request is granted.  REQUIRES: a caller that requests memory holds neither
  // memory nor a turn.
  Hold take(const Schedule::Request& wanted);

  int64_t capacity(size_t device) const { return schedule_.capacity(device); }  // Constant.
  // The result of `f` for the schedule.  No other thread changes the schedule while `f` runs.
  template <typename F>
  auto with_schedule(F f) {
    const std::lock_guard lock(mutex_);
    return f(schedule_);
  }

 private:
  void release(Schedule::Id id);

  std::vector<std::optional<DeviceLock>> locks_;  // Constant.
  std::mutex mutex_;
  std::condition_variable granted_;
  Schedule schedule_;  // Guarded by mutex_.
};

// One device of a scheduler, which outlives it.
struct DeviceSchedule {
  Scheduler& scheduler;
  size_t index;

  Scheduler::Hold memory(int64_t bytes) const {
    return scheduler.take({.device = index, .bytes = bytes});
  }
  Scheduler::Hold turn(Schedule::Use use) const {
    return scheduler.take({.device = index, .turn = use});
  }
  int64_t capacity() const { return scheduler.capacity(index); }
  // Counts only the requests of this process.
  bool is_exclusive_wanted() const {
    return scheduler.with_schedule([&](Schedule& now) { return now.is_exclusive_wanted(index); });
  }
};

}  // namespace mc::eval

#endif  // MC_EVAL_SCHEDULER_H_
