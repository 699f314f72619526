// SPDX-License-Identifier: Apache-2.0
//
// ChildHandle: a session's interface to its child: waiting, stopping and ending it.  In production
// it is a process in a sandbox (sandbox/child.h, which has the contracts); in a test it is an
// object (fakes/fake_worker.h).
#ifndef MC_WORKER_CHILD_HANDLE_H_
#define MC_WORKER_CHILD_HANDLE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "sandbox/child.h"

namespace mc::worker {

class ChildHandle {
 public:
  using Awaited = sandbox::Child::Awaited;
  using Ending = sandbox::Ending;

  virtual ~ChildHandle() = default;
  virtual std::optional<Ending> await(const Awaited& awaited) = 0;
  // True if `channel` is readable or the child has ended; waits for at most `wait`.
  virtual bool has_news(int channel, std::chrono::milliseconds wait) = 0;
  virtual void stop() = 0;
  virtual void go_on() = 0;
  virtual void kill_tree() = 0;
  virtual int64_t memory_peak_bytes() const = 0;
};

std::unique_ptr<ChildHandle> handle_of(sandbox::Child child);

}  // namespace mc::worker

#endif  // MC_WORKER_CHILD_HANDLE_H_
