// SPDX-License-Identifier: Apache-2.0
#include "compile/once.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/process.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytesMax = 4 << 20;
constexpr size_t kKeyBytes = 32;

Result<Fd> lock(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.is_open() || !lock_file(fd, LOCK_EX)) {
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
    auto pipe = make_pipe();
    if (!pipe) return;
    const auto pid = start_program(
        {.argv = {"/bin/sh", "-c", "read line; exec rm -rf \"$1\"", "sh", folder.string()},
         .descriptors = {{pipe->reader.get(), STDIN_FILENO}, {lock.get(), kLock}},
         .has_own_group = true});
    if (!pid) return;
    pid_ = *pid;
    alive_ = std::move(pipe->writer);
  }
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;
  ~RemovedAtEnd() {
    alive_.reset();
    if (pid_ > 0) (void)wait_for_end(pid_);
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
