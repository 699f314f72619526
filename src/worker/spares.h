// SPDX-License-Identifier: Apache-2.0
//
// WarmPool: children that were spawned ahead and wait for a candidate.
//
// On a CUDA device a judge spends a third of a second on its context before it can do
// anything; a spare has done so already.  Each serves one candidate, like any other child.  What it
// costs is memory of the device: about 0.6 GiB a spare, for as long as it waits.  On the CPU
// spawning is a fork, and spares gain nothing.
//
// Contexts come to be one after the other, whoever makes them: who waits for a spare has it as
// soon, and the driver's lock is free for others more often.
//
//   WarmPool spares(2, [&] { return zygote.spawn(Role::kJudge, limits); });
//   Result<Session> session = spares.wait();
//   std::optional<Session> another = spares.take();  // Nothing: spawn one yourself.
//
// Thread-safe.
#ifndef MC_WORKER_SPARES_H_
#define MC_WORKER_SPARES_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/result.h"
#include "worker/session.h"

namespace mc::worker {

class WarmPool {
 public:
  using Spawn = std::function<Result<Session>()>;

  // Keeps `num_kept` of what `spawn` makes, and makes one for each who waits.  A thread of its own
  // calls `spawn` until the destructor returns, one call at a time.  After a failure it calls no
  // more until the next take() or wait().
  WarmPool(size_t num_kept, Spawn spawn);
  // Waits for a `spawn` under way; ends the spares.
  ~WarmPool() = default;

  // One that is alive, now the caller's; nothing where none is ready.  Does not wait.
  std::optional<Session> take();
  // The next one that is alive; the Error of a spawn that fails meanwhile.  REQUIRES: the caller
  // holds nothing that `spawn` waits for.
  Result<Session> wait();

 private:
  void refill(const std::stop_token& stop);
  // REQUIRES: mutex_ is held.  What is dead goes to `dead`, to be reaped once it is not.
  std::optional<Session> take_ready(std::vector<Session>& dead);

  // Constant after construction.
  size_t num_kept_;
  Spawn spawn_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<Session> ready_;  // Longest waiting first.
  size_t num_waiting_ = 0;
  std::optional<Error> failure_;  // The failure of the last spawn; until the next take() or wait().
  uint64_t num_failures_ = 0;

  std::jthread refiller_;  // The first to go.
};

}  // namespace mc::worker

#endif  // MC_WORKER_SPARES_H_
