// SPDX-License-Identifier: Apache-2.0
#include "eval/device_queue.h"

#include <optional>

#include "core/check.h"

namespace mc::eval {
namespace {

// Twice the candidates before this one; an open judge is worth one and a half of them.
size_t cost_of(size_t num_candidates, bool is_warm) {
  if (num_candidates == 0) return is_warm ? 0 : 1;
  return 2 * num_candidates + (is_warm ? 0 : 3);
}

}  // namespace

DeviceQueue::Place DeviceQueue::take(const std::function<bool(size_t index)>& is_warm) {
  const std::lock_guard lock(mutex_);
  std::optional<size_t> best;
  size_t cost_min = 0;
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].is_set_aside) continue;
    const size_t cost = cost_of(devices_[i].num_candidates, is_warm(i));
    if (best && cost >= cost_min) continue;
    best = i;
    cost_min = cost;
  }
  MC_CHECK(best.has_value());
  ++devices_[*best].num_candidates;
  return {*this, *best};
}

void DeviceQueue::give_back(size_t index) {
  const std::lock_guard lock(mutex_);
  MC_CHECK(devices_[index].num_candidates > 0);
  --devices_[index].num_candidates;
}

bool DeviceQueue::set_aside(size_t index) {
  const std::lock_guard lock(mutex_);
  if (devices_[index].is_set_aside || num_left_ == 1) return false;
  devices_[index].is_set_aside = true;
  --num_left_;
  return true;
}

bool DeviceQueue::is_set_aside(size_t index) const {
  const std::lock_guard lock(mutex_);
  return devices_[index].is_set_aside;
}

size_t DeviceQueue::num_left() const {
  const std::lock_guard lock(mutex_);
  return num_left_;
}

}  // namespace mc::eval
