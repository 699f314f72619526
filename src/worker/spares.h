// SPDX-License-Identifier: Apache-2.0
//
// Spares: children that were spawned ahead and wait for a candidate.
//
// On a CUDA device a contestant spends a third of a second on its context before it can do
// anything; a spare has done so already.  Each serves one candidate, like any other child.  What it
// costs is memory of the device: about 0.6 GiB a spare, for as long as it waits.  On the CPU
// spawning is a fork, and spares gain nothing.
//
//   Spares spares(2, [&] { return zygote.spawn(Role::kContestant, limits); });
//   std::optional<Session> session = spares.take();  // Nothing: spawn one yourself.
//
// Thread-safe.
#ifndef MC_WORKER_SPARES_H_
#define MC_WORKER_SPARES_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "core/result.h"
#include "worker/session.h"

namespace mc::worker {

class Spares {
 public:
  using Spawn = std::function<Result<Session>()>;

  // Keeps `num_kept` of what `spawn` makes, which a thread of its own calls until the destructor
  // returns, one call at a time.  After a failure it calls no more until the next take().
  Spares(size_t num_kept, Spawn spawn);
  // Waits for a `spawn` under way; ends the spares.
  ~Spares() = default;

  // One that is alive, now the caller's; nothing where none is ready.  Does not wait.
  std::optional<Session> take();

 private:
  void refill(const std::stop_token& stop);

  // Constant after construction.
  size_t num_kept_;
  Spawn spawn_;

  std::mutex mutex_;
  std::condition_variable_any taken_;
  // Guarded by mutex_.
  std::deque<Session> ready_;  // Longest waiting first.
  bool has_failed_ = false;    // The last spawn; until the next take().

  std::jthread refiller_;  // The first to go.
};

}  // namespace mc::worker

#endif  // MC_WORKER_SPARES_H_
