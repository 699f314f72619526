// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fd.h"

namespace mc {

namespace fs = std::filesystem;

namespace {

// The wait for data in a pipe: its writer may be late or missing.
constexpr int kSilenceMaxMs = 10'000;
constexpr int kLinksMax = 40;  // Linux follows as many.

// Waits until there is data to read; returns at once for a regular file.
Status await_data(int fd, const fs::path& path) {
  pollfd poller{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&poller, 1, kSilenceMaxMs);
  } while (ready < 0 && errno == EINTR);
  if (ready > 0) return ok();
  return Error{ErrorCode::kInvalidInput,
               path.string() + " is a pipe into which nothing was written for 10 s: give a file"};
}

Status write_all(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(ErrorCode::kIo, "cannot write " + path.string());
    text.remove_prefix(static_cast<size_t>(written));
  }
  return ok();
}

Error unfit(const std::string& why) { return Error{ErrorCode::kInvalidInput, why}; }

}  // namespace

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

namespace {

// An error where no file can be made in `folder`, the folder of the output `path`.
Status check_writable(const fs::path& folder, const fs::path& path) {
  std::error_code ignored;
  std::string why;
  if (!path_exists(folder)) {
    why = "the folder " + folder.string() + " is not there";
  } else if (!fs::is_directory(folder, ignored)) {
    why = folder.string() + " is not a folder";
  } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    why = std::generic_category().message(errno);
  }
  return why.empty() ? ok() : Status(unfit("cannot write " + path.string() + ": " + why));
}

// The descriptor of standard output or error, where the path is the same file; else -1.  A shell
// that redirects them to a file has set a position there, which a new descriptor would not share.
int own_stream(const fs::path& path) {
  struct stat file{};
  struct stat own{};
  if (::stat(path.c_str(), &file) != 0) return -1;
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_open = ::fstat(fd, &own) == 0;
    if (is_open && own.st_dev == file.st_dev && own.st_ino == file.st_ino) return fd;
  }
  return -1;
}

}  // namespace

Result<std::string> read_file(const fs::path& path, size_t size_max) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    return Error{ErrorCode::kInvalidInput, path.string() + " is a directory, not a file"};
  }
  // O_NONBLOCK: opening a pipe would block until it has a writer.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.is_open()) return system_error(ErrorCode::kNotFound, "cannot read " + path.string());
  std::string text;
  char block[1 << 16];
  for (;;) {
    if (const Status ready = await_data(fd.get(), path); !ready) return ready.error();
    const ssize_t num_bytes = ::read(fd.get(), block, sizeof block);
    if (num_bytes == 0) return text;
    if (num_bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (num_bytes < 0) return system_error(ErrorCode::kIo, "cannot read " + path.string());
    text.append(block, static_cast<size_t>(num_bytes));
    if (text.size() > size_max) {
      return Error{ErrorCode::kInvalidInput,
                   path.string() + " holds more than " + std::to_string(size_max) + " bytes"};
    }
  }
}

Status write_file_atomically(const fs::path& path, std::string_view text) {
  std::string pattern = path.string() + ".XXXXXX";
  Fd fd(::mkstemp(pattern.data()));
  if (!fd.is_open()) return system_error(ErrorCode::kIo, "cannot write " + path.string());
  ::fchmod(fd.get(), 0644);
  if (const Status written = write_all(fd.get(), text, path); !written) {
    ::unlink(pattern.c_str());
    return written;
  }
  if (::rename(pattern.c_str(), path.c_str()) != 0) {
    const Error error = system_error(ErrorCode::kIo, "cannot rename to " + path.string());
    ::unlink(pattern.c_str());
    return error;
  }
  return ok();
}

Status check_output(const fs::path& path) {
  if (path.empty()) return unfit("expected a file to write, got \"\"");
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return unfit(path.string() + " is a folder: name a file");
  const fs::path target = output_target(path);
  if (target.empty()) {
    if (own_stream(path) >= 0 || ::access(path.c_str(), W_OK) == 0) return ok();
    return unfit("cannot write " + path.string() + ": " + std::generic_category().message(errno));
  }
  return check_writable(target.has_parent_path() ? target.parent_path() : ".", path);
}

Status check_output_folder(const fs::path& path) {
  if (path.empty()) return unfit("expected a folder, got \"\"");
  std::error_code failure;
  fs::path nearest = path;
  while (!fs::exists(nearest, failure) && nearest.has_parent_path() &&
         nearest != nearest.parent_path()) {
    nearest = nearest.parent_path();
  }
  // A relative path none of whose folders exists.
  if (!fs::exists(nearest, failure)) nearest = ".";
  return check_writable(nearest, path);
}

fs::path output_target(const fs::path& path) {
  std::error_code failure;
  const bool is_special = path_exists(path) && !fs::is_regular_file(path, failure);
  if (is_special || own_stream(path) >= 0) return {};
  fs::path target = path;
  for (int i = 0; i < kLinksMax && fs::is_symlink(target, failure); ++i) {
    target = target.parent_path() / fs::read_symlink(target, failure);
  }
  return target;
}

Status write_output(const fs::path& path, std::string_view text) {
  const fs::path target = output_target(path);
  if (!target.empty()) return write_file_atomically(target, text);
  if (const int own = own_stream(path); own >= 0) {
    // Buffered text comes before the new text.
    MC_TRY_VOID(flush_standard_output(), path.string());
    return write_all(own, text, path);
  }
  const Fd fd(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (!fd.is_open()) return system_error(ErrorCode::kIo, "cannot write " + path.string());
  return write_all(fd.get(), text, path);
}

Status flush_standard_output() {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  if (std::cout && std::ferror(stdout) == 0) return ok();
  const std::string why = errno != 0 ? ": " + std::generic_category().message(errno) : "";
  return Error{ErrorCode::kIo, "cannot write standard output" + why};
}

Result<TemporaryDirectory> TemporaryDirectory::create(const std::string& prefix) {
  std::error_code failure;
  const fs::path base = fs::temp_directory_path(failure);
  if (failure) return Error{ErrorCode::kUnavailable, "no temporary directory: set TMPDIR"};
  return create_in(base, prefix);
}

Result<TemporaryDirectory> TemporaryDirectory::create_in(const fs::path& parent,
                                                         const std::string& prefix) {
  MC_CHECK(!prefix.empty() && prefix.find('/') == std::string::npos);
  std::error_code failure;
  fs::create_directories(parent, failure);
  std::string pattern = (parent / (prefix + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    return system_error(ErrorCode::kIo, "cannot make a directory in " + parent.string());
  }
  return TemporaryDirectory(pattern);
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept {
  path_.swap(other.path_);
}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  path_.swap(other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

namespace {

// The folder that an environment variable contains as an absolute path; else "".
fs::path folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  const fs::path path = value != nullptr ? value : "";
  return path.is_absolute() ? path : fs::path();
}

constexpr const char* kRemedy = "set MC_CACHE_DIR to a folder that you can write";

}  // namespace

fs::path cache_directory() {
  const char* own = std::getenv("MC_CACHE_DIR");
  if (own != nullptr && *own != '\0') return own;
  if (const fs::path xdg = folder_of("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "musacoder";
  const fs::path home = folder_of("HOME");
  return home.empty() ? home : home / ".cache/musacoder";
}

Status prepare_cache_directory() {
  const fs::path path = cache_directory();
  if (path.empty()) {
    return Error{ErrorCode::kUnavailable,
                 std::string("there is no place for the cache, since HOME is not set: ") + kRemedy};
  }
  std::error_code failure;
  fs::create_directories(path, failure);
  const bool is_writable = !failure && ::access(path.c_str(), W_OK | X_OK) == 0;
  if (is_writable) return ok();
  const std::string why = failure ? failure.message() : std::generic_category().message(errno);
  return Error{ErrorCode::kUnavailable,
               "cannot write the cache " + path.string() + ": " + why + ": " + kRemedy};
}

}  // namespace mc
