// SPDX-License-Identifier: Apache-2.0
//
// DeviceMemory: how much of a device's memory each evaluation may hold.  First come, first served,
// so one that needs much is not passed by those that need little.  Thread-safe.
//
//   DeviceMemory memory(device_bytes);
//   const auto hold = memory.take(need_of_call(call_bytes));  // Until `hold` goes out of scope.
#ifndef MC_EVAL_DEVICE_MEMORY_H_
#define MC_EVAL_DEVICE_MEMORY_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

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

  // The memory of a device with `device_bytes`, a part of which stays with processes that wait for
  // their next task.  0: there is no device, and nothing to wait for.
  explicit DeviceMemory(int64_t device_bytes);

  // Waits until so much is free; who wants more than there is gets all.
  Hold take(int64_t bytes);

  int64_t capacity() const { return capacity_; }
  size_t num_waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  void give_back(int64_t bytes);

  const int64_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  int64_t free_;
  std::deque<const int64_t*> waiting_;  // In line; each an address on its waiter's stack.
};

// The memory that judging and timing a call with so many bytes of inputs and outputs take.
int64_t need_of_call(double call_bytes);

// The memory that it takes to open a task whose calls are not known yet.  One that needs more runs
// out of memory, and is opened with all.
int64_t need_of_opening(const DeviceMemory& memory);

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICE_MEMORY_H_
