// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <cstdlib>
#include <fstream>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "core/fd.h"

namespace mc {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path, size_t size_max) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    return Error{ErrorCode::kInvalidInput, path.string() + " is a directory, not a file"};
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return system_error(ErrorCode::kNotFound, "cannot read " + path.string());
  std::string text;
  char block[1 << 16];
  while (stream.read(block, sizeof block), stream.gcount() > 0) {
    text.append(block, static_cast<size_t>(stream.gcount()));
    if (text.size() > size_max) {
      return Error{ErrorCode::kInvalidInput,
                   path.string() + " holds more than " + std::to_string(size_max) + " bytes"};
    }
  }
  return text;
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

fs::path cache_directory() {
  if (const char* own = std::getenv("MC_CACHE_DIR")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME")) return fs::path(xdg) / "musacoder";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "/tmp") / ".cache" / "musacoder";
}

}  // namespace mc
