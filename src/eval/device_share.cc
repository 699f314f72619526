// SPDX-License-Identifier: Apache-2.0
#include "eval/device_share.h"

#include <algorithm>

#include "core/check.h"

namespace mc::eval {

DeviceShare::Turn DeviceShare::take(Use use) {
  wait_for_turn(use);
  return Turn(*this, use, lock_ ? lock_->take(use) : DeviceLock::Hold());
}

bool DeviceShare::is_wanted() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(waiting_, Use::kExclusive, &Waiter::use) != waiting_.end();
}

size_t DeviceShare::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void DeviceShare::wait_for_turn(Use use) {
  std::unique_lock lock(mutex_);
  Waiter waiter{use};
  waiting_.push_back(&waiter);
  let_in();
  changed_.wait(lock, [&] { return waiter.is_in; });
}

void DeviceShare::end(Use use) {
  const std::lock_guard lock(mutex_);
  MC_CHECK(is_taken_ == (use == Use::kExclusive));
  if (use == Use::kShared) {
    MC_CHECK(shared_ > 0);
    --shared_;
  } else {
    is_taken_ = false;
  }
  let_in();
}

// Lets in all that may go in now, up to the first one in line that may not.
void DeviceShare::let_in() {
  const auto shares = [](const Waiter* waiter) { return waiter->use == Use::kShared; };
  while (!waiting_.empty() && !is_taken_) {
    const auto chosen = next();
    Waiter& waiter = **chosen;
    const bool is_alone = waiter.use == Use::kExclusive;
    if (is_alone && shared_ > 0) return;
    waiting_.erase(chosen);
    if (!is_alone && exclusive_in_a_row_ > 0) std::ranges::stable_partition(waiting_, shares);
    waiter.is_in = true;
    is_taken_ = is_alone;
    shared_ += is_alone ? 0 : 1;
    exclusive_in_a_row_ = is_alone ? exclusive_in_a_row_ + 1 : 0;
    MC_CHECK(!is_taken_ || shared_ == 0);
    changed_.notify_all();
  }
}

// The waiter that goes in next.  REQUIRES: some wait.
std::deque<DeviceShare::Waiter*>::iterator DeviceShare::next() {
  MC_CHECK(!waiting_.empty() && !is_taken_);
  if (exclusive_in_a_row_ == 0) return waiting_.begin();
  const Use wanted = exclusive_in_a_row_ < kExclusiveInARow ? Use::kExclusive : Use::kShared;
  const auto chosen = std::ranges::find(waiting_, wanted, &Waiter::use);
  return chosen == waiting_.end() ? waiting_.begin() : chosen;
}

}  // namespace mc::eval
