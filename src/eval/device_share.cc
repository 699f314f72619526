// SPDX-License-Identifier: Apache-2.0
#include "eval/device_share.h"

namespace mc::eval {

DeviceShare::Turn DeviceShare::take(Use use) {
  wait_for_turn(use);
  return Turn(*this, use, lock_ ? lock_->take(use) : DeviceLock::Hold());
}

void DeviceShare::wait_for_turn(Use use) {
  std::unique_lock lock(mutex_);
  const uint64_t ticket = last_ticket_++;
  const int64_t others_max = use == Use::kTogether ? together_max_ - 1 : 0;
  changed_.wait(lock, [&] { return next_turn_ == ticket && together_ <= others_max; });
  if (use == Use::kTogether) {
    ++together_;
    ++next_turn_;  // The next one may look; one that wants to be alone holds the turn to its end.
    changed_.notify_all();
  }
}

void DeviceShare::end(Use use) {
  const std::lock_guard lock(mutex_);
  if (use == Use::kTogether) {
    --together_;
  } else {
    ++next_turn_;
  }
  changed_.notify_all();
}

}  // namespace mc::eval
