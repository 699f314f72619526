// SPDX-License-Identifier: Apache-2.0
//
// A process and its descendants according to the supervisor's /proc.
#ifndef MC_SANDBOX_TREE_H_
#define MC_SANDBOX_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace mc::sandbox {

struct TreeUse {
  uint64_t memory_bytes = 0;  // Resident anonymous and shared memory, summed.
  uint64_t num_threads = 0;
};

// The descendants of `root`, without itself.  Processes that start or end during the call may be
// missing.
std::vector<pid_t> descendants(pid_t root);

// Sends a signal to the descendants of `root`, once to each, until there are no new ones or a limit
// of rounds is reached.  Returns their pids.
std::vector<pid_t> signal_descendants(pid_t root, int signal);

// The resources that `root` alone uses; zeros when it has ended.
TreeUse use_of(pid_t root);

// The resources that the descendants of `root` use.
TreeUse use_of_descendants(pid_t root);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_TREE_H_
