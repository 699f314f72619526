// SPDX-License-Identifier: Apache-2.0
//
// The privileges: the launcher and init have all capabilities inside their new user namespace, none
// outside.  Init uses them for mounts and limits, and drops them before it forks the sandboxed
// process, which thus never has any.  The sandboxed process adds the system-call filter.
#include "sandbox/enter.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/file.h"
#include "sandbox/init_status.h"
#include "sandbox/memory.h"
#include "sandbox/mounts.h"
#include "sandbox/steps.h"
#include "sandbox/syscalls.h"
#include "sandbox/tree.h"

namespace mc::sandbox {
namespace {

constexpr unsigned kInsideId = 1000;  // Uid and gid as seen inside.
constexpr int kLauncherPollIntervalUs = 100;
constexpr int kLauncherPollsMax = 50'000;

Error failed(const std::string& what) { return system_error(ErrorCode::kUnavailable, what); }

Status write_text(const char* path, const std::string& text) {
  const Fd file(open(path, O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) return failed(std::string("open ") + path);
  if (write(file.get(), text.data(), text.size()) < 0) return failed(std::string("write ") + path);
  return ok();
}

std::string id_map(unsigned outside) {
  return std::to_string(kInsideId) + " " + std::to_string(outside) + " 1";
}

int wait_forever(void*) {
  for (;;) pause();
}

// True if /proc shows this process what another one uses that is closed to reading, as init is. The
// other one shares this one's memory, which is closed for that moment.
bool sees_closed_processes() {
  alignas(16) char stack[16 << 10];
  const int readable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const pid_t closed = clone(wait_forever, stack + sizeof stack, CLONE_VM | SIGCHLD, nullptr);
  const std::string path = "/proc/" + std::to_string(closed) + "/status";
  const bool is_seen = closed > 0 && read_file(path, 1 << 16).has_value();
  if (closed > 0) {
    kill(closed, SIGKILL);
    waitpid(closed, nullptr, 0);
  }
  prctl(PR_SET_DUMPABLE, readable, 0, 0, 0);
  return is_seen;
}

// Init hides all that it has started where /proc hides it: no use could be measured.
Status check_use_is_seen() {
  if (sees_closed_processes()) return ok();
  return Error{ErrorCode::kUnavailable,
               "/proc is mounted with hidepid, which hides what candidates use from this user"};
}

Status unshare_user() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return failed("unshare user namespace");
  MC_TRY_VOID(write_text("/proc/self/setgroups", "deny"), "user namespace");
  MC_TRY_VOID(write_text("/proc/self/uid_map", id_map(uid)), "user namespace");
  return write_text("/proc/self/gid_map", id_map(gid));
}

Status unshare_one(int flag) { return unshare(flag) == 0 ? ok() : Status(failed("unshare")); }

Status unshare_uts() {
  if (auto status = unshare_one(CLONE_NEWUTS); !status) return status;
  constexpr char kName[] = "sandbox";
  return sethostname(kName, sizeof kName - 1) == 0 ? ok() : Status(failed("sethostname"));
}

Status unshare_all(Steps& steps) {
  using enum Protection;
  MC_TRY_VOID(steps.take(kUserNamespace, unshare_user), "sandbox");
  MC_TRY_VOID(steps.take(kMountNamespace, [] { return unshare_one(CLONE_NEWNS); }), "sandbox");
  MC_TRY_VOID(steps.take(kPidNamespace, [] { return unshare_one(CLONE_NEWPID); }), "sandbox");
  MC_TRY_VOID(steps.take(kNetworkNamespace, [] { return unshare_one(CLONE_NEWNET); }), "sandbox");
  MC_TRY_VOID(steps.take(kIpcNamespace, [] { return unshare_one(CLONE_NEWIPC); }), "sandbox");
  return steps.take(kUtsNamespace, unshare_uts);
}

// The parent's pid according to the host's /proc; 0 when it cannot be read.  (Inside, getppid() is
// 0.)
pid_t parent_outside() {
  const auto status = read_file("/proc/self/status", 1 << 16);
  const size_t at = status ? status->find("PPid:") : std::string::npos;
  return at == std::string::npos ? 0 : std::atoi(status->c_str() + at + 5);
}

// Waits until the launcher has ended.  It polls and uses no descriptor, because a pipe closes
// before the orphans have their new parent, and callers may close unknown descriptors.
Status await_launcher(pid_t launcher) {
  for (int i = 0; i < kLauncherPollsMax; ++i) {
    const pid_t parent = parent_outside();
    usleep(kLauncherPollIntervalUs);
    if (parent != launcher) {
      return parent > 0 ? ok() : Status(failed("read the parent from /proc/self/status"));
    }
  }
  return Error{ErrorCode::kTimeout, "the forking process lives on"};
}

// Called after the launcher has ended: its end would have counted as the parent's death.
Status die_with_parent() {
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 ? ok() : Status(failed("PR_SET_PDEATHSIG"));
}

Status arrange_files(const Profile& profile, Steps& steps) {
  using enum Protection;
  if (steps.has(kMountNamespace)) return build_view(profile, steps);
  for (const Protection step :
       {kReadOnlyRoot, kPrivateTmp, kPrivateProc, kMinimalDev, kHiddenPaths}) {
    MC_TRY_VOID(steps.skip(step, "needs a mount namespace"), "sandbox");
  }
  return ok();
}

Status set_limit(__rlimit_resource resource, uint64_t soft, uint64_t hard) {
  rlimit now{};
  getrlimit(resource, &now);
  const rlimit wanted{std::min<rlim_t>(soft, now.rlim_max), std::min<rlim_t>(hard, now.rlim_max)};
  if (setrlimit(resource, &wanted) == 0) return ok();
  return failed("setrlimit " + std::to_string(static_cast<int>(resource)));
}

// The private writable memory that the process was forked with; limits count on top of it.
uint64_t inherited_data_bytes() {
  const auto status = read_file("/proc/self/status", 1 << 16);
  if (!status) return 0;
  const size_t at = status->find("VmData:");
  unsigned long kib = 0;
  if (at != std::string::npos) std::sscanf(status->c_str() + at, "VmData: %lu", &kib);
  return uint64_t{kib} * 1024;
}

// The limit is RLIMIT_DATA and not RLIMIT_AS, because programs reserve terabytes of address space,
// which costs nothing.  RLIMIT_DATA also counts writable reservations, so the profile has their
// size.  An executed program starts without inherited memory.  This is the last step before that.
Status limit_memory(const Profile& profile) {
  const uint64_t inherited = profile.allow_exec ? 0 : inherited_data_bytes();
  const Limits& limits = profile.limits;
  const uint64_t bytes = limits.memory_bytes + limits.reserved_bytes + inherited;
  return set_limit(RLIMIT_DATA, bytes, bytes);
}

// The core limit is 1 and not 0: with 0 a core_pattern that is a pipe would still run, and delay
// death.
Status set_limits(const Limits& limits) {
  const auto cpu_s = static_cast<uint64_t>(limits.cpu.count());
  MC_TRY_VOID(set_limit(RLIMIT_CPU, cpu_s, cpu_s + 1), "cpu limit");
  MC_TRY_VOID(set_limit(RLIMIT_FSIZE, limits.file_bytes_max, limits.file_bytes_max), "file limit");
  MC_TRY_VOID(set_limit(RLIMIT_NOFILE, limits.files_max, limits.files_max), "files limit");
  MC_TRY_VOID(set_limit(RLIMIT_CORE, 1, 1), "core limit");
  return set_limit(RLIMIT_MSGQUEUE, 0, 0);
}

bool bounds_pids_by_namespace() {
  utsname names{};
  int major = 0;
  int minor = 0;
  return uname(&names) == 0 && std::sscanf(names.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 14));
}

// Limits the number of tasks.  Root is exempt from RLIMIT_NPROC.  Since Linux 6.14 pid_max belongs
// to the pid namespace; before, it is a setting of the whole host, which must not change.
Status bound_tasks(const Profile& profile, uid_t host_uid, const Steps& steps) {
  // Linux hands these numbers out once, in the first round, so that later tasks share the rest.
  constexpr uint64_t kReservedPids = 300;
  // Two more for init and a fork in progress.
  const uint64_t tasks_max = profile.limits.threads_max + 2;
  if (host_uid != 0) return set_limit(RLIMIT_NPROC, tasks_max, tasks_max);
  if (!bounds_pids_by_namespace() || !steps.has(Protection::kPidNamespace) ||
      !steps.has(Protection::kPrivateProc)) {
    return Error{ErrorCode::kUnavailable,
                 "root is exempt from RLIMIT_NPROC; run as an ordinary user, or Linux 6.14"};
  }
  return write_text("/proc/sys/kernel/pid_max", std::to_string(kReservedPids + tasks_max));
}

Status drop_capabilities() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no_new_privs");
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return failed("drop bounding set");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return syscall(SYS_capset, &header, none) == 0 ? ok() : Status(failed("capset"));
}

// Enables the loopback for programs whose parts communicate by TCP.  It is the only interface in
// this namespace.
Status raise_loopback() {
  const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ioctl(any.get(), SIOCSIFFLAGS, &request) == 0 ? ok() : Status(failed("raise loopback"));
}

// The profile for the filter: sockets are allowed only in a network namespace of their own.
Profile confined(Profile profile, const Steps& steps) {
  profile.allow_sockets &= steps.has(Protection::kNetworkNamespace);
  return profile;
}

void close_between(unsigned first, unsigned last) {
  if (first <= last) close_range(first, last, 0);
}

void close_all_but(std::span<const int> keep_fds) {
  std::vector<int> keep(keep_fds.begin(), keep_fds.end());
  std::ranges::sort(keep);
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : keep) {
    if (fd < static_cast<int>(next)) continue;
    close_between(next, static_cast<unsigned>(fd) - 1);
    next = static_cast<unsigned>(fd) + 1;
  }
  close_between(next, UINT_MAX);
}

void end_orphans() {
  signal_descendants(getpid(), SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

// The whole life of init.  It has no capability and no descriptor, and the sandboxed process cannot
// read it.
[[noreturn]] void wait_as_init(pid_t sandboxed) {
  close_range(0, UINT_MAX, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const bool dies_as_tree = getpid() == 1;
  if (dies_as_tree) forget_memory();
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended == sandboxed) {
      if (!dies_as_tree) end_orphans();  // Otherwise the kernel kills them.
      _exit(encode_init_status(status));
    }
    if (ended < 0 && errno != EINTR) _exit(127);
  }
}

// Every signal is blocked in init, because it inherited handlers that are meant for another
// process.  Init is closed to reading before the fork: after it the sandboxed process may be first
// to run, and would find init's memory and descriptors open.
Status fork_sandboxed() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const int readable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const pid_t sandboxed = fork();
  if (sandboxed > 0) wait_as_init(sandboxed);
  prctl(PR_SET_DUMPABLE, readable, 0, 0, 0);  // It may read its own /proc/self.
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return sandboxed == 0 ? ok() : Status(failed("fork"));
}

}  // namespace

Result<SandboxHandle> unshare_namespaces(const Profile& profile) {
  setsid();  // Fails without harm where the process is a group leader already.
  nice(profile.limits.niceness);
  SandboxHandle handle{getpid(), geteuid(), {}};
  Steps steps(profile);
  MC_TRY_VOID(steps.take(Protection::kMeasuredUse, check_use_is_seen), "sandbox");
  if (auto status = unshare_all(steps); !status) return status.error();
  handle.missing = steps.missing();
  return handle;
}

Result<std::vector<Missing>> enter(const Profile& profile, SandboxHandle handle,
                                   std::span<const int> keep_fds) {
  using enum Protection;
  MC_TRY_VOID(await_launcher(handle.launcher), "sandbox");
  MC_TRY_VOID(die_with_parent(), "sandbox");
  Steps steps(profile, std::move(handle.missing));
  MC_TRY_VOID(arrange_files(profile, steps), "sandbox");
  // Closed before the limit is set: a supervisor may have more open files than the limit.
  close_all_but(keep_fds);
  MC_TRY_VOID(set_limits(profile.limits), "sandbox");
  MC_TRY_VOID(
      steps.take(kProcessLimit, [&] { return bound_tasks(profile, handle.host_uid, steps); }),
      "sandbox");
  MC_TRY_VOID(seal_view(steps), "sandbox");
  const Profile filtered = confined(profile, steps);
  if (filtered.allow_sockets) MC_TRY_VOID(raise_loopback(), "sandbox");
  MC_TRY_VOID(steps.take(kNoCapabilities, drop_capabilities), "sandbox");
  MC_TRY_VOID(fork_sandboxed(), "sandbox");
  // The sandboxed process from here on.
  MC_TRY_VOID(die_with_parent(), "sandbox");
  MC_TRY_VOID(steps.take(kSeccomp, [&] { return filter_syscalls(filtered); }), "sandbox");
  MC_TRY_VOID(limit_memory(profile), "sandbox");
  return steps.missing();
}

}  // namespace mc::sandbox
