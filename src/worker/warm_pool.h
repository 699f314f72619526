// SPDX-License-Identifier: Apache-2.0
//
// WarmPool: children that are spawned in advance and wait for a candidate.
//
// On a CUDA device a judge needs a third of a second to create its context; a child of the pool has
// done this already.  Each child serves one candidate, like any other child.  A waiting child costs
// device memory: about 0.6 GiB for as long as it waits.  On the CPU a spawn is a fork, and spares
// gain nothing.
//
// The driver creates contexts one after the other, in whatever process.  So a caller that waits for
// a child loses no time, and the driver's lock is free more often.
//
//   WarmPool spares(2, [&] { return zygote.spawn(Role::kJudge, limits); });
//   Result<Session> session = spares.wait();
//   std::optional<Session> another = spares.take();  // Empty: spawn a child yourself.
//
// Thread-safe.
#ifndef MC_WORKER_WARM_POOL_H_
#define MC_WORKER_WARM_POOL_H_

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

  // Keeps `num_kept` children from `spawn`, and one more for each waiting caller.  A thread of the
  // pool calls `spawn`, one call at a time, until the destructor.  After a failure it pauses until
  // the next take() or wait().
  WarmPool(size_t num_kept, Spawn spawn);
  // Waits for a call of `spawn` in progress; ends the spares.
  ~WarmPool() = default;

  // A live child, which now belongs to the caller; nothing where none is ready.  Does not wait.
  std::optional<Session> take();
  // The next live child, or the Error of a spawn that fails in the meantime.  REQUIRES: the caller
  // holds nothing that `spawn` waits for.
  Result<Session> wait();

 private:
  void refill(const std::stop_token& stop);
  // REQUIRES: mutex_ is held.  Moves dead children to `dead`, to be reaped after the mutex is
  // released.
  std::optional<Session> take_ready(std::vector<Session>& dead);

  // Constant after construction.
  size_t num_kept_;
  Spawn spawn_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<Session> ready_;  // The longest waiting child is first.
  size_t num_waiting_ = 0;
  std::optional<Error> failure_;  // The failure of the last spawn, until the next take() or wait().
  uint64_t num_failures_ = 0;

  std::jthread refiller_;  // Destroyed first.
};

}  // namespace mc::worker

#endif  // MC_WORKER_WARM_POOL_H_
