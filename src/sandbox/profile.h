// SPDX-License-Identifier: Apache-2.0
//
// Profile: the sandbox's settings for one process.  Plain data; the process that forks sandboxed
// processes receives it as JSON:
//
//   {"limits": {"cpu_s": 30, "wall_ms": 60000, "memory_bytes": 4294967296,
//               "reserved_bytes": 0, "file_bytes_max": 1073741824, "files_max": 256,
//               "threads_max": 64, "tmp_bytes": 268435456, "niceness": 0},
//    "allow_exec": false, "allow_fork": false, "allow_sockets": false,
//    "only_visible": false, "writable": [], "visible": ["/tmp/build"],
//    "hidden": ["/home/me/.ssh"], "devices": [], "artifacts": "",
//    "optional": ["process_limit"], "off": []}
//
// Every member may be left out of the JSON and then has its default; an unknown one is an error.
#ifndef MC_SANDBOX_PROFILE_H_
#define MC_SANDBOX_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "sandbox/protection.h"

namespace mc::sandbox {

struct Limits {
  std::chrono::seconds cpu{60};                 // RLIMIT_CPU: for one process with all its threads.
  std::chrono::milliseconds wall{60'000};       // Enforced by the supervisor.
  uint64_t memory_bytes = uint64_t{4} << 30;    // In addition to inherited memory.
  uint64_t reserved_bytes = 0;                  // Address space that uses no memory.
  uint64_t file_bytes_max = uint64_t{1} << 30;  // The bytes of one file, memfds included.
  uint64_t files_max = 256;                     // Open descriptors.
  uint64_t threads_max = 64;                    // The number of tasks in the whole tree.
  uint64_t tmp_bytes = uint64_t{256} << 20;     // The size of the private /tmp.
  int niceness = 0;                             // The nice value: 0 to 19.
};

// Paths where users keep keys and tokens: those of the current user, of root, and of the system.
std::vector<std::string> secret_paths();

// The folder in which a process finds its `artifacts`.
inline constexpr const char* kArtifactsPath = "/artifacts";

struct Profile {
  Limits limits;
  bool allow_exec = false;
  bool allow_fork = false;  // True if it may create processes; threads are always allowed.
  // True if the tree's own processes may communicate: by local sockets, and by TCP over the
  // loopback of their own network namespace.  Without that namespace sockets are forbidden.
  bool allow_sockets = false;
  // Absolute paths.  Everything is read-only except `writable` directories.  Paths below /tmp,
  // /var/tmp, /dev and /run exist only if they are in `visible` (read-only) or `writable`.  With
  // `only_visible` this holds for every path, except links to directories of /usr, such as /lib;
  // `hidden` paths then stay hidden even within a visible directory.
  bool only_visible = false;
  std::vector<std::string> writable;
  std::vector<std::string> visible;
  std::vector<std::string> hidden = secret_paths();
  std::vector<std::string> devices;  // Further device nodes, e.g. "/dev/nvidia0".
  // A directory that is mounted read-only at kArtifactsPath; "" for none; needs `only_visible`.
  // Files that are added to it later are visible, too.
  std::string artifacts;
  // Protections that a machine may lack, and those that are not even tried.  The supervisor counts
  // tasks, too, and the kernel does not limit those of root before 6.14.
  std::vector<Protection> optional = {Protection::kProcessLimit};
  std::vector<Protection> off;
};

// A profile under which every protection is optional, for use only with the user's consent.
Profile lenient(Profile profile);

std::string to_json(const Profile& profile);
// kInvalidInput names the wrong member.
Result<Profile> parse_profile(std::string_view json);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_PROFILE_H_
