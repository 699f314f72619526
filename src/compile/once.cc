// SPDX-License-Identifier: Apache-2.0
#include "compile/once.h"

#include <algorithm>

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/hash.h"

extern char** environ;

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytesMax = 4 << 20;
constexpr size_t kKeyBytes = 32;

Result<Fd> lock(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.is_open() || ::flock(fd.get(), LOCK_EX) != 0) {
    return system_error(ErrorCode::kIo, "lock " + path.string());
  }
  return fd;
}

// A child process that removes a folder once this process has ended in any way: by Ctrl-C, a signal
// or a kill.  Until the folder is removed, the child holds `lock`, too.  It has its own process
// group, which Ctrl-C in a terminal does not reach.  Where it cannot be started, the folder stays
// after such an end.
class RemovedAtEnd {
 public:
  RemovedAtEnd(const fs::path& folder, const Fd& lock) {
    constexpr int kLock = 3;  // Any descriptor that is not closed when the shell starts.
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    const Fd to_read(ends[0]);
    alive_ = Fd(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_read.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, lock.get(), kLock);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::string words[] = {"sh", "-c", "read line; exec rm -rf \"$1\"", "sh", folder.string()};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (::posix_spawn(&pid_, "/bin/sh", &actions, &attributes, argv.data(), environ) != 0)
      pid_ = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;
  ~RemovedAtEnd() {
    alive_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

 private:
  Fd alive_;  // The child blocks in a read until this end is closed.
  pid_t pid_ = -1;
};

void forget_old(const fs::path& home) {
  std::error_code failure;
  std::vector<fs::directory_entry> folders;
  for (const auto& entry : fs::directory_iterator(home, failure)) {
    if (entry.is_directory(failure)) folders.push_back(entry);
  }
  std::ranges::sort(folders, std::greater(),
                    [](const fs::directory_entry& entry) { return entry.last_write_time(); });
  for (size_t i = kOnceKept; i < folders.size(); ++i) fs::remove_all(folders[i], failure);
}

}  // namespace

fs::path Once::folder() const {
  MC_CHECK(key.size() >= kKeyBytes && !kind.empty());
  return cache_directory() / kind / key.substr(0, kKeyBytes);
}

Result<fs::path> make_once(const Once& once, const Progress& progress,
                           const std::function<Status(const fs::path& folder)>& make) {
  MC_CHECK(progress && make);
  const fs::path folder = once.folder();
  const fs::path home = folder.parent_path();
  if (const Status cache = prepare_cache_directory(); !cache) return cache.error();
  std::error_code failure;
  fs::create_directories(home, failure);
  MC_TRY(const Fd held, lock(home / "lock"), once.kind);
  if (fs::exists(folder, failure)) return folder;
  progress(once.what);
  {
    MC_TRY(const TemporaryDirectory work, TemporaryDirectory::create_in(home, "work"), once.kind);
    const RemovedAtEnd removed(work.path(), held);
    MC_TRY_VOID(make(work.path()), once.kind);
    fs::permissions(work.path(), fs::perms(0755), failure);
    fs::rename(work.path(), folder, failure);
    if (failure) return Error{ErrorCode::kIo, "cannot publish " + folder.string()};
  }
  forget_old(home);
  return folder;
}

Result<std::string> hash_of_files(const fs::path& root, const std::vector<fs::path>& paths) {
  MC_CHECK(!root.empty() && !paths.empty());
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code failure;
    if (!fs::is_directory(root / path, failure)) files.push_back(root / path);
    for (const auto& entry : fs::recursive_directory_iterator(root / path, failure)) {
      if (entry.is_regular_file(failure)) files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::string all;
  for (const fs::path& file : files) {
    MC_TRY(const std::string text, read_file(file, kFileBytesMax), root.string());
    all += file.lexically_relative(root).string() + '\0' + content_hash({text});
  }
  return content_hash({all});
}

}  // namespace mc::compile
