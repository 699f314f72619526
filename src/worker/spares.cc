// SPDX-License-Identifier: Apache-2.0
#include "worker/spares.h"

#include <chrono>
#include <utility>
#include <vector>

#include "core/check.h"

namespace mc::worker {

Spares::Spares(size_t num_kept, Spawn spawn)
    : num_kept_(num_kept),
      spawn_(std::move(spawn)),
      refiller_([this](const std::stop_token& stop) { refill(stop); }) {}

std::optional<Session> Spares::take() {
  std::vector<Session> dead;  // Reaped once the lock is released.
  std::optional<Session> taken;
  const std::lock_guard lock(mutex_);
  while (!taken && !ready_.empty()) {
    Session session = std::move(ready_.front());
    ready_.pop_front();
    // Nothing was asked, so any news is bad: its end, or words out of turn.
    if (session.has_news(std::chrono::milliseconds(0))) {
      dead.push_back(std::move(session));
    } else {
      taken = std::move(session);
    }
  }
  has_failed_ = false;
  taken_.notify_one();
  return taken;
}

void Spares::refill(const std::stop_token& stop) {
  const auto is_short = [this] { return ready_.size() < num_kept_ && !has_failed_; };
  std::unique_lock lock(mutex_);
  while (taken_.wait(lock, stop, is_short) && !stop.stop_requested()) {
    lock.unlock();
    Result<Session> spare = spawn_();
    lock.lock();
    has_failed_ = !spare;
    if (spare) ready_.push_back(std::move(*spare));
    MC_CHECK(ready_.size() <= num_kept_);
  }
}

}  // namespace mc::worker
