// SPDX-License-Identifier: Apache-2.0
//
// ChildHandle: what a session holds its child by: how it lives, waits and ends.  The product's is a
// process in a sandbox (sandbox/child.h, which has the contracts); a test's is an object
// (fakes/fake_worker.h).
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
  // True if `channel` has something to be read, or the child has ended; waits that long for it.
  virtual bool has_news(int channel, std::chrono::milliseconds wait) = 0;
  virtual void stop() = 0;
  virtual void go_on() = 0;
  virtual void kill_tree() = 0;
  virtual int64_t memory_peak_bytes() const = 0;
};

std::unique_ptr<ChildHandle> handle_of(sandbox::Child child);

}  // namespace mc::worker

#endif  // MC_WORKER_CHILD_HANDLE_H_
