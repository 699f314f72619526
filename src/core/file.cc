// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <cerrno>
#include <cstdlib>
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

constexpr int kSilenceMaxMs = 10'000;  // A pipe's: its writer may be late, or there may be none.

// Waits until something can be read; a file never waits.
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

}  // namespace

Result<std::string> read_file(const fs::path& path, size_t size_max) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    return Error{ErrorCode::kInvalidInput, path.string() + " is a directory, not a file"};
  }
  // To open a pipe would wait for its writer.
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
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0) {
      const Error error = system_error(ErrorCode::kIo, "cannot write " + path.string());
      ::unlink(pattern.c_str());
      return error;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (::rename(pattern.c_str(), path.c_str()) != 0) {
    return system_error(ErrorCode::kIo, "cannot rename to " + path.string());
  }
  return ok();
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

// The value of a variable that names a folder by its whole path; else "".
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
