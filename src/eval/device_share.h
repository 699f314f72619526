// SPDX-License-Identifier: Apache-2.0
//
// DeviceShare: who may use a device at the same time.  Correctness runs share it; a timed run has
// it alone.  Thread-safe.
//
// First come, first served, but for this: before one is alone, all who share have to leave, and
// the device idles as the last ones do.  So those who wait to be alone follow each other, before
// the others, up to `kExclusiveInARow`; then all go in who wait to share: neither kind can starve
// the other.
//
// With a lock (device_lock.h) the same holds between processes.
// Example:
//   const auto turn = share.take(DeviceShare::Use::kExclusive);   // Until `turn` goes out of
//   scope.
#ifndef MC_EVAL_DEVICE_SHARE_H_
#define MC_EVAL_DEVICE_SHARE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
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

  static constexpr int kExclusiveInARow = 12;

  explicit DeviceShare(std::optional<DeviceLock> lock = std::nullopt) : lock_(std::move(lock)) {}

  // Waits for its turn.
  Turn take(Use use);

  // True if somebody in this process waits to be alone.
  bool is_wanted() const;
  size_t num_waiting() const;  // In this process.

 private:
  struct Waiter {
    Use use;
    bool is_in = false;
  };

  void wait_for_turn(Use use);
  void end(Use use);
  void let_in();
  std::deque<Waiter*>::iterator next();

  const std::optional<DeviceLock> lock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<Waiter*> waiting_;  // In line.
  int64_t shared_ = 0;           // How many are in, sharing.
  bool is_taken_ = false;        // One is in, alone.
  int exclusive_in_a_row_ = 0;   // Up to the last one that was let in.
};

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICE_SHARE_H_
