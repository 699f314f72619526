// SPDX-License-Identifier: Apache-2.0
//
// Order matters.  Paths that are mounted again later (writable and visible paths, device nodes) are
// first cloned as detached mounts, held only by a descriptor, because the private mounts cover the
// paths.  Then the whole inherited tree becomes read-only in one call; later mounts are ours and
// have the flags that we give them.  With an empty root, the inherited tree is left instead: the
// root becomes an empty tmpfs, and the old root is unmounted at the end, since the kernel allows a
// new /proc only to a process that sees another one.  Capabilities are dropped after all this, so
// it cannot be undone.
#include "sandbox/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/file.h"

namespace mc::sandbox {
namespace {

constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                    "/dev/urandom"};
constexpr const char* kDeviceLinks[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"}};
// Links in the root of most systems; programs refer to their interpreters and libraries by them.
constexpr const char* kRootLinks[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
constexpr const char* kHost = "/.host";  // The inherited tree, until it is unmounted.
constexpr uint64_t kTmpFilesMax = 65'536;

enum class Access { kReadOnly, kReadWrite };

Error failed(const std::string& what) { return system_error(ErrorCode::kUnavailable, what); }

// These calls have no wrapper in the C library before 2.36, and Ubuntu 22.04 has 2.35.
int call_open_tree(const std::string& path, unsigned flags) {
  return static_cast<int>(syscall(SYS_open_tree, AT_FDCWD, path.c_str(), flags));
}

bool has_moved(int tree, const std::string& path) {
  return syscall(SYS_move_mount, tree, "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

bool has_set(int directory, const std::string& path, unsigned flags, mount_attr& attributes) {
  return syscall(SYS_mount_setattr, directory, path.c_str(), flags, &attributes,
                 sizeof attributes) == 0;
}

// A mount that a descriptor holds, and the path at which it will be attached.
struct Detached {
  std::string path;
  Fd tree;
  Access access = Access::kReadOnly;
};

Result<Detached> detach(const std::string& path, Access access) {
  const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
  Fd tree(call_open_tree(path, flags));
  if (!tree.is_open()) return failed("open_tree " + path);
  return Detached{path, std::move(tree), access};
}

Status detach_all(const std::vector<std::string>& paths, Access access,
                  std::vector<Detached>& detached) {
  for (const std::string& path : paths) {
    MC_TRY(auto tree, detach(path, access), "sandbox path");
    detached.push_back(std::move(tree));
  }
  return ok();
}

Status set_read_only(int directory, const std::string& path) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
  const unsigned flags = AT_RECURSIVE | (path.empty() ? AT_EMPTY_PATH : 0);
  if (!has_set(directory, path, flags, attributes)) {
    return failed("mount_setattr " + (path.empty() ? "a visible path" : path));
  }
  return ok();
}

// Makes the directories at `path` and above; existing ones do not change.
Status make_mount_point(const Detached& detached) {
  struct stat info{};
  if (fstat(detached.tree.get(), &info) != 0) return failed("stat " + detached.path);
  struct stat found{};
  if (stat(detached.path.c_str(), &found) == 0) return ok();
  const std::filesystem::path path(detached.path);
  std::error_code error;
  std::filesystem::create_directories(S_ISDIR(info.st_mode) ? path : path.parent_path(), error);
  if (error) {
    return Error{ErrorCode::kUnavailable, "mkdir " + detached.path + ": " + error.message()};
  }
  if (S_ISDIR(info.st_mode)) return ok();
  const Fd file(open(detached.path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0444));
  return file.is_open() ? ok() : Status(failed("create " + detached.path));
}

Status attach(const Detached& detached, const std::string& path) {
  const int tree = detached.tree.get();
  if (!has_moved(tree, path)) {
    return failed("move_mount to " + path);
  }
  return ok();
}

Status attach_all(const std::vector<Detached>& detached) {
  for (const Detached& each : detached) {
    if (each.access == Access::kReadOnly) {
      MC_TRY_VOID(set_read_only(each.tree.get(), ""), each.path);
    }
    MC_TRY_VOID(make_mount_point(each), "sandbox path");
    MC_TRY_VOID(attach(each, each.path), "sandbox path");
  }
  return ok();
}

Status mount_tmpfs(const std::string& path, const std::string& options, unsigned long flags) {
  if (mount("tmpfs", path.c_str(), "tmpfs", flags, options.c_str()) == 0) return ok();
  return failed("mount tmpfs on " + path);
}

// Mounts one tmpfs at all three paths, so that one size limits them together.
Status make_private_tmp(const Limits& limits) {
  const std::string options = "mode=1777,size=" + std::to_string(limits.tmp_bytes) +
                              ",nr_inodes=" + std::to_string(kTmpFilesMax);
  MC_TRY_VOID(mount_tmpfs("/tmp", options, MS_NOSUID | MS_NODEV), "private /tmp");
  for (const char* path : {"/var/tmp", "/dev/shm"}) {
    if (access(path, F_OK) != 0) continue;
    MC_TRY(const Detached tmp, detach("/tmp", Access::kReadWrite), "private /tmp");
    MC_TRY_VOID(attach(tmp, path), "private /tmp");
  }
  return ok();
}

Result<std::vector<Detached>> detach_devices(const Profile& profile) {
  std::vector<std::string> paths(std::begin(kDevices), std::end(kDevices));
  paths.insert(paths.end(), profile.devices.begin(), profile.devices.end());
  std::vector<Detached> devices;
  MC_TRY_VOID(detach_all(paths, Access::kReadWrite, devices), "private /dev");
  return devices;
}

Status make_minimal_dev(const std::vector<Detached>& devices) {
  MC_TRY_VOID(mount_tmpfs("/dev", "mode=0755,size=64k", MS_NOSUID | MS_NOEXEC), "private /dev");
  if (auto status = attach_all(devices); !status) return status;
  for (const auto& [target, link] : kDeviceLinks) {
    if (symlink(target, link) != 0) return failed(std::string("symlink ") + link);
  }
  return mkdir("/dev/shm", 0755) == 0 ? ok() : Status(failed("mkdir /dev/shm"));
}

// The group 0 sees what hidepid=invisible hides, with the command line of process 1, which is the
// supervisor's. Linux 5.8 and later can hide it from all groups.
Status mount_proc() {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  for (const char* options : {"hidepid=ptraceable", "hidepid=invisible", "hidepid=2"}) {
    if (mount("proc", "/proc", "proc", kFlags, options) == 0) return ok();
  }
  return failed("mount proc");
}

Status make_private_proc() {
  auto status = mount_proc();
  if (status) return status;
  // Otherwise the host's processes would stay visible.
  MC_TRY_VOID(mount_tmpfs("/proc", "mode=0555,size=4k", MS_RDONLY), "mask /proc");
  return status;
}

Status cover(const std::string& path, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return mount_tmpfs(path, "mode=0755,size=64k", MS_NOSUID | MS_NODEV);
  MC_TRY(const Detached null, detach("/dev/null", Access::kReadWrite), "hide " + path);
  return attach(null, path);
}

Status hide(const std::vector<std::string>& paths, std::vector<std::string>& hidden) {
  for (const std::string& path : paths) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) continue;  // A path that does not exist need not be hidden.
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) continue;
    MC_TRY_VOID(cover(path, info), "hide " + path);
    if (S_ISDIR(info.st_mode)) hidden.push_back(path);
  }
  return ok();
}

Status set_mount_read_only(const std::string& path) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (has_set(AT_FDCWD, path, 0, attributes)) return ok();
  return failed("mount_setattr " + path);
}

Status bind_read_only(const std::string& path) {
  if (mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return failed("bind " + path);
  }
  return set_mount_read_only(path);
}

Status make_directories(std::span<const char* const> paths) {
  for (const char* path : paths) {
    std::error_code failure;
    std::filesystem::create_directories(path, failure);
    if (failure) return Error{ErrorCode::kUnavailable, "mkdir " + std::string(path)};
  }
  return ok();
}

Status link_as(const std::string& host_path, const char* path) {
  std::error_code failure;
  const auto target = std::filesystem::read_symlink(host_path, failure);
  if (failure || symlink(target.c_str(), path) == 0) return ok();
  return failed(std::string("symlink ") + path);
}

// Replaces the root by an empty tmpfs.  After any failure the root is still the inherited tree.
Status enter_empty_root() {
  constexpr const char* kNew = "/tmp";
  MC_TRY_VOID(mount_tmpfs(kNew, "mode=0755,size=4m", MS_NOSUID | MS_NODEV), "new root");
  const std::string host = std::string(kNew) + kHost;
  if (mkdir(host.c_str(), 0700) != 0 || syscall(SYS_pivot_root, kNew, host.c_str()) != 0) {
    const Error error = failed("pivot_root");
    umount2(kNew, MNT_DETACH);
    return error;
  }
  return chdir("/") == 0 ? ok() : Status(failed("chdir to the new root"));
}

Status furnish_root() {
  constexpr const char* kPlaces[] = {"/dev", "/proc", "/tmp", "/var/tmp"};
  MC_TRY_VOID(make_directories(kPlaces), "new root");
  for (const char* link : kRootLinks) {
    MC_TRY_VOID(link_as(std::string(kHost) + link, link), "new root");
  }
  return ok();
}

Status detach_host_root() {
  if (umount2(kHost, MNT_DETACH) == 0 && rmdir(kHost) == 0) return ok();
  return failed("unmount the inherited tree");
}

// The working directory would stay reachable by relative paths below what now covers it.  A path in
// /proc names another process there.
Status enter_again(const std::string& directory) {
  if (!directory.starts_with("/proc") && chdir(directory.c_str()) == 0) return ok();
  if (chdir("/") == 0) return ok();
  return failed("chdir to the new root");
}

Status build_on_inherited(const Profile& profile, const std::vector<Detached>& shown,
                          const std::vector<Detached>& devices, Steps& steps) {
  using enum Protection;
  std::error_code failure;
  const std::string directory = std::filesystem::current_path(failure);
  std::vector<std::string> hidden;
  MC_TRY_VOID(steps.take(kMinimalDev, [&] { return make_minimal_dev(devices); }), "file system");
  MC_TRY_VOID(steps.take(kReadOnlyRoot, [] { return set_read_only(AT_FDCWD, "/"); }),
              "file system");
  MC_TRY_VOID(steps.take(kPrivateTmp, [&] { return make_private_tmp(profile.limits); }),
              "file system");
  if (steps.has(kHiddenPaths)) {
    MC_TRY_VOID(steps.take(kHiddenPaths, [&] { return hide(profile.hidden, hidden); }),
                "file system");
  } else {
    // Without an empty root, hiding single paths is the best that is possible.
    (void)hide(profile.hidden, hidden);
  }
  MC_TRY_VOID(steps.take(kPrivateProc, make_private_proc), "file system");
  MC_TRY_VOID(attach_all(shown), "file system");
  for (const std::string& path : hidden) {
    MC_TRY_VOID(set_mount_read_only(path), "file system");
  }
  return enter_again(directory);
}

Status build_on_nothing(const Profile& profile, const std::vector<Detached>& shown,
                        const std::vector<Detached>& devices, Steps& steps) {
  using enum Protection;
  MC_TRY_VOID(furnish_root(), "file system");
  MC_TRY_VOID(steps.take(kMinimalDev, [&] { return make_minimal_dev(devices); }), "file system");
  MC_TRY_VOID(steps.take(kPrivateTmp, [&] { return make_private_tmp(profile.limits); }),
              "file system");
  MC_TRY_VOID(steps.take(kPrivateProc, make_private_proc), "file system");
  MC_TRY_VOID(attach_all(shown), "file system");
  std::vector<std::string> hidden;
  MC_TRY_VOID(hide(profile.hidden, hidden), "file system");
  for (const std::string& path : hidden) {
    MC_TRY_VOID(set_mount_read_only(path), "file system");
  }
  MC_TRY_VOID(detach_host_root(), "file system");
  return steps.take(kReadOnlyRoot, [] { return set_mount_read_only("/"); });
}

}  // namespace

Status build_view(const Profile& profile, Steps& steps) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return failed("make mounts private");
  }
  std::vector<Detached> shown;
  MC_TRY_VOID(detach_all(profile.visible, Access::kReadOnly, shown), "visible");
  MC_TRY_VOID(detach_all(profile.writable, Access::kReadWrite, shown), "writable");
  MC_TRY(const auto devices, detach_devices(profile), "file system");
  if (!profile.only_visible) return build_on_inherited(profile, shown, devices, steps);
  if (!profile.artifacts.empty()) {
    MC_TRY(Detached artifacts, detach(profile.artifacts, Access::kReadOnly), "artifacts");
    artifacts.path = kArtifactsPath;
    shown.push_back(std::move(artifacts));
  }
  std::ranges::sort(shown, {}, &Detached::path);  // A directory comes before paths within it.
  MC_TRY_VOID(steps.take(Protection::kHiddenPaths, enter_empty_root), "file system");
  if (steps.has(Protection::kHiddenPaths)) return build_on_nothing(profile, shown, devices, steps);
  std::erase_if(shown, [](const Detached& each) { return each.path == kArtifactsPath; });
  return build_on_inherited(profile, shown, devices, steps);
}

// Makes the parts of /proc that are not about one process (/proc/sys, /proc/sysrq-trigger …)
// read-only: they belong to the host's root, and the sandboxed process may be run by root.  The
// processes' own entries stay writable, because the CUDA driver writes the names of its threads
// there and fails where it cannot.
Status seal_view(const Steps& steps) {
  if (!steps.has(Protection::kPrivateProc)) return ok();
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename().string();
    struct stat info{};
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) continue;
    if (lstat(entry.path().c_str(), &info) != 0) continue;
    const bool is_writable = S_ISREG(info.st_mode) && (info.st_mode & 0222) != 0;
    if (S_ISDIR(info.st_mode) || is_writable) {
      MC_TRY_VOID(bind_read_only(entry.path()), "seal /proc");
    }
  }
  return failure ? Status(Error{ErrorCode::kUnavailable, "read /proc: " + failure.message()})
                 : ok();
}

}  // namespace mc::sandbox
