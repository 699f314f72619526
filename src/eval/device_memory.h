// SPDX-License-Identifier: Apache-2.0
//
// DeviceMemory: how much of a device's memory each evaluation may hold.  Thread-safe.
//
// An evaluation whose need fits may pass those that wait for more, but only kPassedMax of them may
// pass one that waits: then the others wait until it has its memory.
//
//   DeviceMemory memory(device_bytes);
//   const auto hold = memory.take(need_of_trials(call, num_shapes));  // Until its end of scope.
#ifndef MC_EVAL_DEVICE_MEMORY_H_
#define MC_EVAL_DEVICE_MEMORY_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "worker/protocol.h"

namespace mc::eval {

class DeviceMemory {
 public:
  class Hold {
   public:
    Hold(DeviceMemory& memory, int64_t bytes) : memory_(&memory), bytes_(bytes) {}
    Hold(Hold&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (memory_ != nullptr) memory_->give_back(bytes_);
    }

   private:
    DeviceMemory* memory_;
    int64_t bytes_;
  };

  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  static constexpr int kPassedMax = 8;

  // The memory of a device with `device_bytes`, a part of which stays with processes that wait for
  // their next task.  0: there is no device, and nothing to wait for.
  explicit DeviceMemory(int64_t device_bytes);

  // Waits until so much is free; a request for more than there is gets all.
  Hold take(int64_t bytes);

  int64_t capacity() const { return capacity_; }
  size_t num_waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  struct Waiter {
    int64_t wanted;
    int num_passed = 0;  // The others that came later and went first.
  };

  void give_back(int64_t bytes);
  // True if the waiter may have its memory now.  REQUIRES: mutex_ is held.
  bool may_enter(const Waiter& waiter) const;

  const int64_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  int64_t free_;
  std::deque<Waiter*> waiting_;  // In the order of arrival; each is on its waiter's stack.
};

// The memory that the trials of a candidate take, the contexts of its processes included.
int64_t need_of_trials(const worker::CallMemory& call, size_t num_shapes);

// The memory that timing a candidate takes, and the part of it that a round's calls may have.
int64_t need_of_timing(const worker::CallMemory& call, const DeviceMemory& memory);
int64_t batch_bytes_max(const DeviceMemory& memory);

// The memory that a candidate's process keeps between its trials and its timed calls.
int64_t kept_by_candidate(const worker::CallMemory& call);

// The memory that it takes to look into a task whose call is estimated to take so much; a share of
// the device's where the estimate is zero, that is, unknown.  A task that needs more runs out of
// memory, and is opened once more with all of it.
int64_t need_of_opening(const worker::CallMemory& call, const DeviceMemory& memory);

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICE_MEMORY_H_
