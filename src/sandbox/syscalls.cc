// SPDX-License-Identifier: Apache-2.0
#include "sandbox/syscalls.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace mc::sandbox {
namespace {

constexpr const char* kRefused[] = {
    // Memory, descriptors and identity of other processes.
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "kcmp",
    "pidfd_getfd",
    "move_pages",
    "migrate_pages",
    // Namespaces and mounts.
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "quotactl",
    "quotactl_fd",
    "swapon",
    "swapoff",
    "acct",
    // Large or rarely needed kernel surface.
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "keyctl",
    "add_key",
    "request_key",
    "personality",
    "modify_ldt",
    "memfd_secret",
    "lookup_dcookie",
    "uselib",
    "ustat",
    "sysfs",
    "_sysctl",
    "nfsservctl",
    "vhangup",
    "syslog",
    // The machine itself.
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "sethostname",
    "setdomainname",
    "ioperm",
    "iopl",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    // Memory that no limit includes.
    "shmget",
    "shmat",
    "semget",
    "msgget",
    "mq_open",
};
constexpr const char* kRefusedWithoutExec[] = {"execve", "execveat"};
constexpr const char* kRefusedWithoutFork[] = {"fork", "vfork"};
constexpr uint64_t kNamespaceFlags[] = {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNS,    CLONE_NEWNET,
                                        CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
constexpr uint64_t kTerminalRequests[] = {TIOCSTI, TIOCLINUX};
constexpr uint64_t kSocketTypeMask = 0xf;  // Flags are in the higher bits.
constexpr uint64_t kOtherSocketTypes[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_PACKET};
constexpr uint32_t kRefuse = SCMP_ACT_ERRNO(EPERM);

// A filter under construction; the first failure is kept.
class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release) {}

  template <typename... Conditions>
  void refuse(const char* name, Conditions... conditions) {
    add(kRefuse, name, conditions...);
  }

  template <typename... Conditions>
  void add(uint32_t action, const char* name, Conditions... conditions) {
    if (failure_ != 0) return;
    const int number = seccomp_syscall_resolve_name(name);
    failure_ = number == __NR_SCMP_ERROR ? -EINVAL
                                         : seccomp_rule_add(context_.get(), action, number,
                                                            sizeof...(Conditions), conditions...);
    if (failure_ != 0) culprit_ = name;
  }

  Status load() {
    if (failure_ == 0) {
      culprit_ = "loading";
      failure_ = seccomp_load(context_.get());
    }
    if (failure_ == 0) return ok();
    return Error{ErrorCode::kUnavailable,
                 "seccomp filter: " + culprit_ + ": " + std::strerror(-failure_)};
  }

 private:
  std::unique_ptr<void, decltype(&seccomp_release)> context_;
  int failure_ = 0;
  std::string culprit_;
};

void refuse_new_processes(Filter& filter) {
  for (const char* name : kRefusedWithoutFork) filter.refuse(name);
  filter.refuse("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, uint64_t{CLONE_THREAD}, uint64_t{0}));
}

void refuse_new_namespaces(Filter& filter) {
  for (const uint64_t flag : kNamespaceFlags) {
    filter.refuse("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
}

// Forbids sockets.  The CUDA driver does not start without a local socket of its own, so a process
// with devices may have that one kind, which reaches no process without connect().  Other processes
// may not create socket pairs either: descriptors in flight in a socket count against the user, and
// block all other processes of that user from sending any.
void refuse_sockets(Filter& filter, const Profile& profile) {
  if (profile.allow_sockets) {
    // AF_UNIX is the domain before AF_INET.
    filter.refuse("socket", SCMP_A0(SCMP_CMP_GT, uint64_t{AF_INET}));
    return;
  }
  filter.refuse("connect");
  if (profile.devices.empty()) {
    filter.refuse("socketpair");
    return filter.refuse("socket");
  }
  filter.refuse("socket", SCMP_A0(SCMP_CMP_NE, uint64_t{AF_UNIX}));
  for (const uint64_t type : kOtherSocketTypes) {
    filter.refuse("socket", SCMP_A1(SCMP_CMP_MASKED_EQ, kSocketTypeMask, type));
  }
}

}  // namespace

Status filter_syscalls(const Profile& profile) {
  Filter filter;
  for (const char* name : kRefused) filter.refuse(name);
  for (const uint64_t request : kTerminalRequests) {
    filter.refuse("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, uint64_t{0xffffffff}, request));
  }
  filter.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  refuse_sockets(filter, profile);
  refuse_new_namespaces(filter);
  if (!profile.allow_fork) refuse_new_processes(filter);
  if (!profile.allow_exec) {
    for (const char* name : kRefusedWithoutExec) filter.refuse(name);
  }
  return filter.load();
}

}  // namespace mc::sandbox
