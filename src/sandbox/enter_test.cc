// SPDX-License-Identifier: Apache-2.0
#include "sandbox/enter.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/fd.h"
#include "core/file.h"
#include "sandbox/testing/test_child.h"

namespace mc::sandbox {
namespace {

// True if creating a file at `path` fails with `error`.
bool cannot_create(const std::string& path, int error) {
  const Fd fd(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  return !fd.is_open() && errno == error;
}

bool can_create(const std::string& path) {
  return Fd(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).is_open();
}

bool is_refused(long result) { return result == -1 && errno == EPERM; }

std::string first_text(const std::string& path) {
  std::ifstream stream(path);
  std::string text;
  std::getline(stream, text);
  return text;
}

// Linux 5.8 and later have a hidepid that is also for the group 0.
bool hides_from_all_groups() {
  utsname names{};
  int major = 0;
  int minor = 0;
  return uname(&names) == 0 && std::sscanf(names.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 8));
}

bool is_covered(const std::string& path) {
  return path.starts_with("/tmp") || path.starts_with("/var/tmp") || path.starts_with("/run");
}

// A new directory outside the paths that the sandbox replaces.
class OutsideDirectory {
 public:
  OutsideDirectory() {
    const std::string here = std::filesystem::current_path();
    const char* home = getenv("HOME");
    std::string pattern = (is_covered(here) && home != nullptr ? home : here) + "/.mc_test.XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr) << "needs a directory outside /tmp: " << pattern;
    path_ = pattern;
  }
  OutsideDirectory(const OutsideDirectory&) = delete;
  OutsideDirectory& operator=(const OutsideDirectory&) = delete;
  ~OutsideDirectory() { std::filesystem::remove_all(path_); }
  std::string path_;
};

TEST(Enter, LeavesTheRootReadOnly) {
  const OutsideDirectory outside;
  for (const std::string& directory : {outside.path_, std::string("/usr"), std::string("/sys")}) {
    EXPECT_TRUE(holds_inside(Profile{}, [&] { return cannot_create(directory + "/x", EROFS); }))
        << directory;
  }
}

TEST(Enter, LetsAWritableDirectoryBeWritten) {
  const OutsideDirectory outside;
  Profile profile;
  profile.writable = {outside.path_};
  EXPECT_TRUE(holds_inside(profile, [&] { return can_create(outside.path_ + "/x"); }));
  EXPECT_TRUE(std::filesystem::exists(outside.path_ + "/x"));
}

TEST(Enter, ShowsAVisibleDirectoryBelowTmpReadOnly) {
  const auto directory = TemporaryDirectory::create("sandbox_test");
  ASSERT_TRUE(directory);
  std::ofstream(directory->path() / "x") << "seen";
  Profile profile;
  profile.visible = {directory->path()};
  EXPECT_TRUE(holds_inside(profile, [&] {
    return first_text(directory->path() / "x") == "seen" &&
           cannot_create(directory->path() / "y", EROFS);
  }));
}

TEST(Enter, GivesAnEmptyTmpOfItsOwn) {
  const std::string mine = "/tmp/sandbox_test_" + std::to_string(getpid());
  ASSERT_TRUE(can_create(mine));
  for (const std::string directory : {"/tmp", "/var/tmp", "/dev/shm"}) {
    const std::string theirs = directory + "/sandbox_test_inside";
    EXPECT_TRUE(holds_inside(Profile{}, [&] {
      return std::filesystem::is_empty(directory) && can_create(theirs);
    })) << directory;
    EXPECT_FALSE(std::filesystem::exists(theirs));
  }
  unlink(mine.c_str());
}

TEST(Enter, LeavesAWorkingDirectoryThatIsCovered) {
  const auto directory = TemporaryDirectory::create("sandbox_test");
  ASSERT_TRUE(directory);
  std::ofstream(directory->path() / "x") << "seen";
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(directory->path());
  EXPECT_TRUE(holds_inside(Profile{}, [] { return first_text("x").empty(); }));
  std::filesystem::current_path("/proc/1/task/1");
  EXPECT_TRUE(holds_inside(Profile{}, [] { return first_text("cmdline").empty(); }));
  std::filesystem::current_path("/usr/lib");  // Not covered.
  EXPECT_TRUE(holds_inside(Profile{}, [] { return std::filesystem::exists("../lib"); }));
  std::filesystem::current_path(before);
}

TEST(Enter, LimitsTheSizeOfTmp) {
  Profile profile;
  profile.limits.tmp_bytes = 1 << 20;
  EXPECT_TRUE(holds_inside(profile, [] {
    const Fd fd(open("/tmp/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const std::vector<char> block(1 << 16);
    for (int i = 0; i < 16; ++i) {
      if (write(fd.get(), block.data(), block.size()) != ssize_t{1} << 16) return false;
    }
    return write(fd.get(), block.data(), block.size()) < 0 && errno == ENOSPC;
  }));
}

TEST(Enter, HidesSecrets) {
  const OutsideDirectory outside;
  std::ofstream(outside.path_ + "/key") << "secret";
  std::filesystem::create_directory(outside.path_ + "/keys");
  std::ofstream(outside.path_ + "/keys/key") << "secret";
  Profile profile;
  profile.hidden = {outside.path_ + "/key", outside.path_ + "/keys", outside.path_ + "/none"};
  EXPECT_TRUE(holds_inside(profile, [&] {
    return first_text(outside.path_ + "/key").empty() &&
           std::filesystem::is_empty(outside.path_ + "/keys") &&
           cannot_create(outside.path_ + "/keys/x", EROFS);
  }));
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

TEST(Enter, ShowsOnlyVisiblePathsInAnEmptyRoot) {
  const OutsideDirectory outside;
  const OutsideDirectory other;
  std::filesystem::create_directory(outside.path_ + "/keys");
  std::ofstream(outside.path_ + "/keys/key") << "secret";
  std::ofstream(outside.path_ + "/x") << "seen";
  std::ofstream(other.path_ + "/file") << "seen too";
  std::ofstream(other.path_ + "/other") << "not seen";
  Profile profile;
  profile.only_visible = true;
  profile.visible = {other.path_ + "/file", outside.path_};
  profile.hidden = {outside.path_ + "/keys"};
  EXPECT_TRUE(holds_inside(profile, [&] {
    return first_text(outside.path_ + "/x") == "seen" &&
           first_text(other.path_ + "/file") == "seen too" &&
           names_in(other.path_) == std::vector<std::string>{"file"} &&
           std::filesystem::is_empty(outside.path_ + "/keys");
  }));
  EXPECT_TRUE(holds_inside(profile, [&] {
    return !std::filesystem::exists("/etc") && !std::filesystem::exists("/usr") &&
           !std::filesystem::exists("/.host");
  }));
  EXPECT_TRUE(holds_inside(profile, [&] {
    return cannot_create("/x", EROFS) && cannot_create(outside.path_ + "/y", EROFS) &&
           cannot_create(other.path_ + "/y", EROFS) && can_create("/tmp/y") &&
           cannot_create("/proc/sys/kernel/core_pattern", EROFS);
  }));
}

TEST(Enter, ShowsArtifactsThatAreAddedLater) {
  const OutsideDirectory outside;
  Profile profile;
  profile.only_visible = true;
  profile.artifacts = outside.path_;
  const Fd ready(memfd_create("ready", 0));
  auto child = Child::start(profile, std::array{ready.get()}, [&](const auto&) {
    char byte = 0;
    while (pread(ready.get(), &byte, 1, 0) != 1) usleep(1000);
    const std::string place = kArtifactsPath;
    return first_text(place + "/late") == "seen" && cannot_create(place + "/x", EROFS) ? 0 : 1;
  });
  ASSERT_TRUE(child) << child.error().message;
  std::ofstream(outside.path_ + "/late") << "seen";
  ASSERT_EQ(write(ready.get(), "x", 1), 1);
  EXPECT_EQ(describe(child->wait(test_deadline())), "exit code 0");
}

TEST(Enter, ShowsOnlyItsOwnProcesses) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    int num_processes = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") == std::string::npos) ++num_processes;
    }
    // Process 1 is hidden where Linux can do so: its command line is the supervisor's.
    return num_processes <= 2 && getpid() == 2 && first_text("/proc/self/comm") != "" &&
           (access("/proc/1", F_OK) != 0 || !hides_from_all_groups());
  }));
}

TEST(Enter, HidesTheEnvironmentOfOtherProcesses) {
  setenv("MC_SANDBOX_TEST_SECRET", "1", 1);
  EXPECT_TRUE(holds_inside(Profile{}, [] { return first_text("/proc/1/environ").empty(); }));
  unsetenv("MC_SANDBOX_TEST_SECRET");
}

TEST(Enter, KeepsKernelSettingsReadOnly) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    const Fd fd(open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
    return !fd.is_open();
  }));
}

TEST(Enter, HasAMinimalDev) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    std::ofstream null("/dev/null");
    null << "x" << std::flush;
    const bool has_random = std::ifstream("/dev/urandom").get() != EOF;
    return null.good() && has_random && access("/dev/kmsg", F_OK) != 0 &&
           access("/dev/tty", F_OK) != 0;
  }));
}

TEST(Enter, CannotConnectToItself) {
  Profile profile;
  profile.off = {Protection::kSeccomp};  // Seccomp would refuse the socket.
  EXPECT_TRUE(holds_inside(profile, [] {
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(9);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return fd.is_open() &&
           connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
           errno == ENETUNREACH;
  }));
}

TEST(Enter, RefusesSockets) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    for (const int domain : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}) {
      int ends[2];
      if (!is_refused(socket(domain, SOCK_STREAM, 0))) return false;
      if (!is_refused(socketpair(domain, SOCK_STREAM, 0, ends))) return false;
    }
    return true;
  }));
}

TEST(Enter, RefusesNewProcesses) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    return is_refused(fork()) && is_refused(vfork()) && is_refused(syscall(SYS_fork));
  }));
}

TEST(Enter, MakesClone3FallBackToClone) {
  EXPECT_TRUE(holds_inside(
      Profile{}, [] { return syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS; }));
}

TEST(Enter, AllowsThreads) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    int value = 0;
    std::thread([&] { value = 1; }).join();
    return value == 1;
  }));
}

TEST(Enter, AllowsPairsOfThreadsAsOftenAsOneWants) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    for (int i = 0; i < 400; ++i) {
      std::thread one([] {});
      std::thread two([] {});
      one.join();
      two.join();
    }
    return true;
  }));
}

TEST(Enter, AllowsNewProcessesWhereTheProfileDoes) {
  Profile profile;
  profile.allow_fork = true;
  EXPECT_TRUE(holds_inside(profile, [] {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    return pid > 0 && waitpid(pid, nullptr, 0) == pid;
  }));
}

TEST(Enter, RefusesExec) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    return is_refused(execl("/bin/true", "true", nullptr)) &&
           is_refused(syscall(SYS_execveat, -1, "/bin/true", nullptr, nullptr, 0));
  }));
}

TEST(Enter, RefusesSystemCallsThatCandidatesDoNotNeed) {
  Profile profile;
  profile.allow_fork = true;
  const std::vector<std::pair<const char*, long (*)()>> calls = {
      {"ptrace", [] { return syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0); }},
      {"process_vm_readv", [] { return syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0); }},
      {"mount", [] { return syscall(SYS_mount, "t", "/tmp", "tmpfs", 0, ""); }},
      {"umount2", [] { return syscall(SYS_umount2, "/tmp", MNT_DETACH); }},
      {"unshare", [] { return syscall(SYS_unshare, CLONE_NEWUSER); }},
      {"setns", [] { return syscall(SYS_setns, 0, 0); }},
      {"clone of a user namespace",
       [] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); }},
      {"bpf", [] { return syscall(SYS_bpf, 0, 0, 0); }},
      {"perf_event_open", [] { return syscall(SYS_perf_event_open, 0, 0, 0, 0, 0); }},
      {"userfaultfd", [] { return syscall(SYS_userfaultfd, 0); }},
      {"io_uring_setup", [] { return syscall(SYS_io_uring_setup, 1, 0); }},
      {"keyctl", [] { return syscall(SYS_keyctl, 0, 0, 0, 0, 0); }},
      {"personality", [] { return syscall(SYS_personality, 0x0040000); }},
      {"shmget", [] { return syscall(SYS_shmget, 0, 4096, 0600); }},
      {"pidfd_getfd", [] { return syscall(SYS_pidfd_getfd, 0, 0, 0); }},
      {"open_by_handle_at", [] { return syscall(SYS_open_by_handle_at, 0, 0, 0); }},
  };
  for (const auto& [name, call] : calls) {
    EXPECT_TRUE(holds_inside(profile, [&] { return is_refused(call()); })) << name;
  }
}

// The only kind of sockets that the CUDA driver needs.
TEST(Enter, WithDevicesAllowsOneKindOfSocketThatReachesNoProcess) {
  Profile profile;
  profile.devices = {"/dev/null"};
  EXPECT_TRUE(holds_inside(profile, [] {
    const Fd local(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{AF_UNIX, "/tmp/nobody"};
    const auto* any = reinterpret_cast<const sockaddr*>(&address);
    return local.is_open() && is_refused(connect(local.get(), any, sizeof address)) &&
           is_refused(socket(AF_UNIX, SOCK_STREAM, 0)) &&
           is_refused(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) &&
           is_refused(socket(AF_INET, SOCK_SEQPACKET, 0));
  }));
}

// Listens on a free port of the loopback and connects to it.
bool reaches_itself() {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (bind(listener.get(), any, size) != 0 || listen(listener.get(), 1) != 0) return false;
  if (getsockname(listener.get(), any, &size) != 0) return false;
  const Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(client.get(), any, size) == 0;
}

TEST(Enter, WithSocketsReachesOnlyItself) {
  Profile profile;
  profile.allow_sockets = true;
  EXPECT_TRUE(holds_inside(profile, reaches_itself));
  EXPECT_TRUE(holds_inside(profile, [] {
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(53);
    address.sin_addr.s_addr = htonl(0x08080808);
    const auto* any = reinterpret_cast<const sockaddr*>(&address);
    return connect(fd.get(), any, sizeof address) != 0 && errno == ENETUNREACH &&
           is_refused(socket(AF_NETLINK, SOCK_RAW, 0));
  }));
}

TEST(Enter, GivesNoSocketsWithoutANetworkOfItsOwn) {
  Profile profile;
  profile.allow_sockets = true;
  profile.off = {Protection::kNetworkNamespace};
  EXPECT_TRUE(holds_inside(profile, [] {
    return is_refused(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) &&
           is_refused(connect(-1, nullptr, 0));
  }));
}

TEST(Enter, LetsAProcessNameItsThreads) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    return Fd(open("/proc/self/task/2/comm", O_WRONLY | O_CLOEXEC)).is_open();
  }));
}

TEST(Enter, AllowsMemfd) {
  EXPECT_TRUE(holds_inside(
      Profile{}, [] { return Fd(static_cast<int>(memfd_create("x", MFD_CLOEXEC))).is_open(); }));
}

TEST(Enter, DropsEveryCapability) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    std::ifstream status("/proc/self/status");
    int num_seen = 0;
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("Cap")) continue;
      if (line.substr(line.find('\t') + 1) != "0000000000000000") return false;
      ++num_seen;
    }
    return num_seen == 5 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  }));
}

TEST(Enter, HidesTheHostsName) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    utsname names{};
    return uname(&names) == 0 && std::string(names.nodename) == "sandbox";
  }));
}

TEST(Enter, CannotSignalTheSupervisor) {
  const pid_t supervisor = getpid();
  EXPECT_TRUE(holds_inside(Profile{}, [&] {
    // An invisible pid cannot be signalled; -1 reaches only the caller's own processes.
    return supervisor <= 2 || (kill(supervisor, 0) == -1 && errno == ESRCH);
  }));
}

TEST(Enter, CannotKillItsInit) {
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    kill(1, SIGTERM);
    kill(1, SIGKILL);
    return getppid() == 1;
  }));
}

TEST(Enter, ClosesEveryDescriptorThatIsNotKept) {
  const auto kept = make_memfd("kept", 1);
  const auto lost = make_memfd("lost", 1);
  ASSERT_TRUE(kept && lost);
  auto child = Child::start(Profile{}, std::array{kept->get()}, [&](const auto&) {
    return fcntl(kept->get(), F_GETFD) >= 0 && fcntl(lost->get(), F_GETFD) == -1 ? 0 : 1;
  });
  ASSERT_TRUE(child);
  EXPECT_EQ(describe(child->wait(test_deadline())), "exit code 0");
}

TEST(Enter, LimitsDescriptors) {
  Profile profile;
  profile.limits.files_max = 16;
  EXPECT_TRUE(holds_inside(profile, [] {
    for (int i = 0; i < 16; ++i) {
      if (dup(0) < 0) return errno == EMFILE;
    }
    return false;
  }));
}

TEST(Enter, LimitsPrivateMemory) {
  Profile profile;
  profile.limits.memory_bytes = 64 << 20;
  EXPECT_TRUE(holds_inside(profile, [] {
    const auto map = [](size_t size) {
      return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    };
    return map(32 << 20) != MAP_FAILED && map(64 << 20) == MAP_FAILED && errno == ENOMEM;
  }));
}

TEST(Enter, LetsAddressSpaceBeReserved) {
  Profile profile;
  profile.limits.memory_bytes = 64 << 20;
  EXPECT_TRUE(holds_inside(profile, [] {
    return mmap(nullptr, size_t{1} << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0) != MAP_FAILED;
  }));
}

TEST(Enter, LimitsTheSizeOfAFile) {
  Profile profile;
  profile.limits.file_bytes_max = 4096;
  EXPECT_EQ(ending_inside(profile,
                          [] {
                            const int fd = memfd_create("x", 0);
                            return ftruncate(fd, 8192) == 0 ? 0 : 1;
                          }),
            "signal 25 (File size limit exceeded)");
}

TEST(Enter, RunsAtItsNiceness) {
  const int before = getpriority(PRIO_PROCESS, 0);
  const int after = std::min(before + 4, 19);
  Profile profile;
  profile.limits.niceness = 4;
  EXPECT_TRUE(holds_inside(profile, [&] { return getpriority(PRIO_PROCESS, 0) == after; }));
}

TEST(Enter, FailsWhereAWritableDirectoryIsMissing) {
  Profile profile;
  profile.writable = {"/nonexistent/place"};
  EXPECT_THAT(ending_inside(profile, [] { return 0; }),
              testing::HasSubstr("open_tree /nonexistent/place: No such file or directory"));
}

TEST(Enter, ReportsAProtectionThatIsOff) {
  Profile profile;
  profile.off = {Protection::kUtsNamespace};
  auto child = Child::start(profile, {}, [](const std::vector<Missing>& missing) {
    return missing.size() == 1 && missing[0].protection == Protection::kUtsNamespace ? 0 : 1;
  });
  ASSERT_TRUE(child);
  EXPECT_EQ(describe(child->wait(test_deadline())), "exit code 0");
}

// True if an ordinary user's child has its use measured where /proc has these options.
bool is_measured_with(const char* options) {
  const pid_t pid = fork();
  if (pid == 0) {
    constexpr uid_t kUser = 12345;
    const bool is_user = unshare(CLONE_NEWNS) == 0 &&
                         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("proc", "/proc", "proc", 0, options) == 0 &&
                         setgroups(0, nullptr) == 0 && setgid(kUser) == 0 && setuid(kUser) == 0;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    const auto handle = unshare_namespaces(lenient(Profile{}));
    if (!is_user || !handle) _exit(2);
    const bool is_missing = std::ranges::any_of(handle->missing, [](const Missing& one) {
      return one.protection == Protection::kMeasuredUse;
    });
    _exit(is_missing ? 1 : 0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 2) << options;
  return status == 0;
}

TEST(Enter, ReportsAHostThatHidesProcessesFromTheSupervisor) {
  if (geteuid() != 0) GTEST_SKIP() << "only root mounts a /proc";
  EXPECT_TRUE(is_measured_with("hidepid=0"));
  EXPECT_FALSE(is_measured_with("hidepid=1"));
  EXPECT_FALSE(is_measured_with("hidepid=2"));
  EXPECT_FALSE(is_measured_with("hidepid=2,gid=4"));
  EXPECT_TRUE(is_measured_with("hidepid=2,gid=12345"));
  EXPECT_FALSE(is_measured_with("hidepid=4,gid=12345"));  // This mode ignores the group.
}

TEST(Enter, RunsWithEveryProtectionOff) {
  Profile profile;
  profile.off.assign(kAllProtections.begin(), kAllProtections.end());
  EXPECT_EQ(ending_inside(profile, [] { return getppid() == 1 ? 1 : 7; }), "exit code 7");
}

TEST(Enter, FailsWhereARequiredProtectionIsMissing) {
  Profile profile;
  profile.off = {Protection::kMountNamespace};
  EXPECT_THAT(ending_inside(profile, [] { return 0; }),
              testing::HasSubstr("read_only_root: needs a mount namespace"));
}

}  // namespace
}  // namespace mc::sandbox
