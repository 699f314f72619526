// SPDX-License-Identifier: Apache-2.0
//
// DeviceQueue: which of several equal devices measures the next candidate.  Thread-safe.
//
// The device with the fewest candidates is next, those that wait for it included.  Among equals one
// that is warm for the task, which has an open judge of it, comes first.  A warm device also comes
// before one that has a candidate less, but for an idle one.
//
//   DeviceQueue queue(2);
//   const auto place = queue.take([&](size_t index) { return is_warm(index); });
//   measure_on(place.index());  // Until `place` goes out of scope.
#ifndef MC_EVAL_DEVICE_QUEUE_H_
#define MC_EVAL_DEVICE_QUEUE_H_

#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace mc::eval {

class DeviceQueue {
 public:
  class Place {
   public:
    Place(DeviceQueue& queue, size_t index) : queue_(&queue), index_(index) {}
    Place(Place&& other) noexcept
        : queue_(std::exchange(other.queue_, nullptr)), index_(other.index_) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (queue_ != nullptr) queue_->give_back(index_);
    }
    size_t index() const { return index_; }

   private:
    DeviceQueue* queue_;
    size_t index_;
  };

  // REQUIRES: there is one.
  explicit DeviceQueue(size_t num_devices) : devices_(num_devices), num_left_(num_devices) {}

  // Never waits: the waiting is that of the device's own arbiters.
  Place take(const std::function<bool(size_t index)>& is_warm);

  // No further candidate goes to this device.  The result says if that is new: nothing changes
  // where it is the last one, or was set aside before.
  bool set_aside(size_t index);
  bool is_set_aside(size_t index) const;
  size_t num_left() const;

 private:
  struct Load {
    size_t num_candidates = 0;
    bool is_set_aside = false;
  };

  void give_back(size_t index);

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Load> devices_;
  size_t num_left_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICE_QUEUE_H_
