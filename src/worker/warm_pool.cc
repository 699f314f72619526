// SPDX-License-Identifier: Apache-2.0
#include "worker/warm_pool.h"

#include <chrono>
#include <utility>
#include <vector>

#include "core/check.h"

namespace mc::worker {

WarmPool::WarmPool(size_t num_kept, Spawn spawn)
    : num_kept_(num_kept),
      spawn_(std::move(spawn)),
      refiller_([this](const std::stop_token& stop) { refill(stop); }) {
  MC_CHECK(spawn_ != nullptr);
}

std::optional<Session> WarmPool::take_ready(std::vector<Session>& dead) {
  while (!ready_.empty()) {
    Session session = std::move(ready_.front());
    ready_.pop_front();
    // Without a request, any news means failure: the child has ended or has sent an unexpected
    // message.
    if (!session.has_news(std::chrono::milliseconds(0))) return session;
    dead.push_back(std::move(session));
  }
  return std::nullopt;
}

std::optional<Session> WarmPool::take() {
  std::vector<Session> dead;  // Reaped once the lock is released.
  const std::lock_guard lock(mutex_);
  std::optional<Session> taken = take_ready(dead);
  failure_.reset();
  changed_.notify_all();
  return taken;
}

Result<Session> WarmPool::wait() {
  std::vector<Session> dead;
  std::optional<Session> taken;
  std::unique_lock lock(mutex_);
  failure_.reset();
  const uint64_t failures_before = num_failures_;
  ++num_waiting_;
  changed_.notify_all();
  changed_.wait(lock, [&] {
    taken = take_ready(dead);
    return taken || num_failures_ != failures_before;
  });
  MC_CHECK(num_waiting_ > 0);
  --num_waiting_;
  changed_.notify_all();  // One more child is to be spawned, to be kept.
  if (taken) return std::move(*taken);
  return failure_.value_or(Error{ErrorCode::kUnavailable, "no process could be made ahead"});
}

void WarmPool::refill(const std::stop_token& stop) {
  const auto is_short = [this] { return ready_.size() < num_kept_ + num_waiting_ && !failure_; };
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, is_short) && !stop.stop_requested()) {
    lock.unlock();
    Result<Session> spawned = spawn_();
    lock.lock();
    if (spawned) {
      ready_.push_back(std::move(*spawned));
    } else {
      failure_ = spawned.error();
      ++num_failures_;
    }
    changed_.notify_all();
  }
}

}  // namespace mc::worker
