// SPDX-License-Identifier: Apache-2.0
#include "model/publish.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/file.h"

namespace mc::model {
namespace {

namespace fs = std::filesystem;

Status write_all(const Fd& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(ErrorCode::kIo, "write");
    text.remove_prefix(static_cast<size_t>(written));
  }
  return ok();
}

Status write_parts(const Fd& fd, std::span<const std::string_view> parts) {
  for (const std::string_view part : parts) {
    MC_TRY_VOID(write_all(fd, part), "its bytes");
  }
  if (::fsync(fd.get()) != 0) return system_error(ErrorCode::kIo, "fsync");
  return ok();
}

// Flushes a folder, so that the names in it are on disk too.
void sync_folder(const fs::path& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.is_open()) ::fsync(fd.get());
}

Status rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::rename(from, to, failure);
  if (failure) {
    return Error{ErrorCode::kIo, "cannot rename to " + to.string() + ": " + failure.message()};
  }
  return ok();
}

}  // namespace

Status write_file_synced(const fs::path& path, std::span<const std::string_view> parts) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.is_open()) return system_error(ErrorCode::kIo, "cannot write " + path.string());
  const Status status = write_parts(fd, parts);
  if (!status) {
    ::unlink(path.c_str());
    return with_context(status.error(), "cannot write " + path.string());
  }
  return ok();
}

Status publish_folder(const fs::path& path, const std::function<Status(const fs::path&)>& write) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  MC_TRY(const TemporaryDirectory room,
         TemporaryDirectory::create_in(absolute.parent_path(), "." + absolute.filename().string()),
         "write " + path.string());
  const fs::path fresh = room.path() / "new";
  std::error_code failure;
  if (!fs::create_directory(fresh, failure)) {
    return Error{ErrorCode::kIo, "cannot make a folder beside " + path.string()};
  }
  MC_TRY_VOID(write(fresh), "write " + path.string());
  sync_folder(fresh);
  if (fs::exists(absolute, failure)) {
    MC_TRY_VOID(rename_folder(absolute, room.path() / "old"), "replace " + path.string());
  }
  MC_TRY_VOID(rename_folder(fresh, absolute), "write " + path.string());
  sync_folder(absolute.parent_path());
  return ok();
}

}  // namespace mc::model
