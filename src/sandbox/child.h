// SPDX-License-Identifier: Apache-2.0
//
// Child: the supervisor's handle on one sandboxed process and all that it starts.
//
// The handle refers to init (enter.h), whose end is the end of the whole tree.  No process outlives
// the handle: the destructor kills and reaps.  A Child is used by one thread at a time.
//
//   MC_TRY(Child child, Child::adopt(pid, profile), "sandboxed process");
//   send(channel, question);
//   if (auto ending = child.await({.fd = channel, .deadline = now + 10s})) return crashed(*ending);
//   read(channel, answer);
#ifndef MC_SANDBOX_CHILD_H_
#define MC_SANDBOX_CHILD_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/fd.h"
#include "core/result.h"
#include "sandbox/init_status.h"
#include "sandbox/profile.h"
#include "sandbox/protection.h"

namespace mc::sandbox {

// The sandbox ended the process because a limit was passed.
struct TimedOut {};
struct CpuExceeded {};
struct MemoryExceeded {
  uint64_t bytes = 0;  // The bytes that were seen.
};
struct ThreadsExceeded {
  uint64_t num_threads = 0;
};

// The way in which a process ended.  The kernel, when out of memory, may also cause Signaled with
// SIGKILL.
using Ending =
    std::variant<Exited, Signaled, TimedOut, CpuExceeded, MemoryExceeded, ThreadsExceeded>;

// "exit code 1", "signal 11 (Segmentation fault)", "time limit" …
std::string describe(const Ending& ending);

struct Usage {
  std::chrono::microseconds cpu{0};  // User and system time of the whole tree.
  uint64_t memory_bytes_peak = 0;    // The observed peak, without inherited memory.
};

// Makes this process the parent of orphaned descendants, as Child needs.  Idempotent.
Status become_reaper();

inline constexpr std::chrono::milliseconds kLookInterval{20};

class Child {
 public:
  using Clock = std::chrono::steady_clock;

  // The function that runs inside.  Its argument is the protections that are not in force there;
  // its result is the exit code.
  using Body = std::function<int(const std::vector<Missing>&)>;

  // Forks, enters the sandbox and runs `body` there.  `body` runs in a copy of this process that
  // has only the calling thread, and an exception that leaves it ends that copy.  Descriptors 0, 1,
  // 2 and `keep_fds` stay open in it.  kUnavailable names the protection that is missing.
  static Result<Child> start(const Profile& profile, std::span<const int> keep_fds,
                             const Body& body);

  // Takes over an init process that another process forked and that is now a child of this one.
  static Result<Child> adopt(pid_t init, const Profile& profile);

  Child(Child&&) = default;
  Child& operator=(Child&& other) noexcept;
  ~Child() { kill_tree(); }

  enum class Ready { kToRead, kToWrite };
  struct Awaited {
    int fd = -1;  // -1: waits only for the end.
    Ready ready = Ready::kToRead;
    Clock::time_point deadline;
  };
  // Waits until the descriptor is ready (nullopt), or the tree has ended.  In the meantime it
  // checks memory, threads and deadline, and kills the tree when a limit is exceeded.  Readable
  // bytes take precedence over the end; a mere hang-up counts as ready only when no end follows
  // within a moment.
  std::optional<Ending> await(const Awaited& awaited);

  // Waits for the end; kills the tree at `deadline`.
  Ending wait(Clock::time_point deadline);

  // The end, if it has happened.  Does not wait.
  std::optional<Ending> poll();

  // For loops with a poll() of their own, every kLookInterval.  The end, if it has happened, or if
  // a limit or `deadline` has just been exceeded, or if this thread's work was cancelled
  // (core/cancel.h).  Does not wait.
  std::optional<Ending> look(Clock::time_point deadline);

  // Readable when the tree has ended; -1 once the end has been returned.
  int end_fd() const { return pidfd_.get(); }

  // Stops every process of the tree but init until `go_on`; no process inside can undo this.  Work
  // that is queued on a device continues.  Limits stay in force; both functions are idempotent.
  void stop();
  void go_on();

  // Kills and reaps every process of the tree, also stopped ones.  Idempotent.
  void kill_tree();

  pid_t init() const { return init_; }
  // Complete once the child has ended.
  const Usage& usage() const { return usage_; }

 private:
  Child(pid_t init, Fd pidfd, const Profile& profile);
  std::optional<Ending> passed_limit();
  Ending end_with(const Ending& ending);
  void reap();
  void signal_tree(int signal);

  pid_t init_;
  Fd pidfd_;  // Open until the child is reaped.
  Limits limits_;
  bool may_fork_;
  std::vector<pid_t> tree_;   // The processes at the last check, without init.
  bool dies_as_tree_;         // True if a pid namespace makes the kernel kill the tree.
  uint64_t inherited_bytes_;  // Memory that the process was forked with.
  Clock::time_point look_next_{};
  std::optional<Ending> ending_;
  Usage usage_;
};

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_CHILD_H_
