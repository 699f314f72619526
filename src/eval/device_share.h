// SPDX-License-Identifier: Apache-2.0
//
// DeviceShare: who may use a device at the same time.  Correctness runs share it; a timed run has
// it alone.  First come, first served: neither kind can starve the other.  Thread-safe.
//
// Another one says who may hold the device's memory: several evaluations, or one that needs all.
//
// With a lock (device_lock.h) the same holds between processes.
//
//   const auto turn = share.take(DeviceShare::Use::kAlone);   // Until `turn` goes out of scope.
#ifndef MC_EVAL_DEVICE_SHARE_H_
#define MC_EVAL_DEVICE_SHARE_H_

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "eval/device_lock.h"

namespace mc::eval {

class DeviceShare {
 public:
  using Use = DeviceLock::Use;

  class Turn {
   public:
    Turn(DeviceShare& share, Use use, DeviceLock::Hold hold)
        : share_(&share), use_(use), hold_(std::move(hold)) {}
    Turn(Turn&& other) noexcept
        : share_(std::exchange(other.share_, nullptr)),
          use_(other.use_),
          hold_(std::move(other.hold_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (share_ != nullptr) share_->end(use_);
    }

   private:
    DeviceShare* share_;
    Use use_;
    DeviceLock::Hold hold_;
  };

  // At most so many have it together.
  explicit DeviceShare(int64_t together_max = std::numeric_limits<int64_t>::max())
      : together_max_(together_max) {}
  explicit DeviceShare(std::optional<DeviceLock> lock)
      : together_max_(std::numeric_limits<int64_t>::max()), lock_(std::move(lock)) {}

  // Waits for those that came before.
  Turn take(Use use);

 private:
  void wait_for_turn(Use use);
  void end(Use use);

  const int64_t together_max_;
  const std::optional<DeviceLock> lock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  uint64_t last_ticket_ = 0;
  uint64_t next_turn_ = 0;  // The ticket that may go in.
  int64_t together_ = 0;    // How many are in, sharing.
};

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICE_SHARE_H_
