// SPDX-License-Identifier: Apache-2.0
#include "eval/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace mc::eval {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kForAll = 0666;

// Read access suffices for a lock.  In a directory like /tmp, another user's file must not be
// opened with O_CREAT (fs.protected_regular).
Fd open_existing(const fs::path& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

Status make(const fs::path& path) {
  if (open_existing(path).is_open()) return ok();
  const Fd made(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, kForAll));
  if (made.is_open()) {
    ::fchmod(made.get(), kForAll);  // Regardless of the umask.
  } else if (!open_existing(path).is_open()) {
    return system_error(ErrorCode::kIo, "cannot open " + path.string());
  }
  return ok();
}

}  // namespace

// A child between fork and exec may share the descriptor, so closing it does not release the lock.
DeviceLock::Hold::~Hold() {
  if (locked_.is_open()) ::flock(locked_.get(), LOCK_UN);
}

DeviceLock::DeviceLock(const fs::path& stem)
    : entry_(stem.string() + ".entry"), use_(stem.string() + ".use") {}

Result<DeviceLock> DeviceLock::open(const fs::path& directory, const std::string& device) {
  const DeviceLock made(directory / ("musacoder-" + device));
  MC_TRY_VOID(make(made.entry_), "share the device");
  MC_TRY_VOID(make(made.use_), "share the device");
  return made;
}

DeviceLock::Hold DeviceLock::take(Use use) const {
  (void)make(entry_);  // A program that cleans the directory may have removed the files.
  (void)make(use_);
  Fd entry = open_existing(entry_);
  Fd inside = open_existing(use_);
  if (!entry.is_open() || !inside.is_open() || !lock_file(entry, LOCK_EX)) return Hold();
  const Hold on_the_way(std::move(entry));
  if (!lock_file(inside, use == Use::kExclusive ? LOCK_EX : LOCK_SH)) return Hold();
  return Hold(std::move(inside));
}

}  // namespace mc::eval
