// SPDX-License-Identifier: Apache-2.0
//
// A process and its descendants as /proc shows them to the supervisor.
#ifndef MC_SANDBOX_TREE_H_
#define MC_SANDBOX_TREE_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace mc::sandbox {

struct TreeUse {
  uint64_t memory_bytes = 0;  // Anonymous and shared memory resident now, summed.
  uint64_t num_threads = 0;
  std::chrono::milliseconds cpu{0};  // User and system, of those that live.
};

// The descendants of `root`, without itself.  Processes that come or go meanwhile may be missed.
std::vector<pid_t> descendants(pid_t root);

// Sends a signal to the descendants of `root`, once to each, until there are no new ones or a limit
// of rounds is reached.  Returns those that were seen.
std::vector<pid_t> signal_descendants(pid_t root, int signal);

// The use of `root` alone; zeros when it has ended.
TreeUse use_of(pid_t root);

// The use of the descendants of `root`.
TreeUse use_of_descendants(pid_t root);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_TREE_H_
