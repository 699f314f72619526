// SPDX-License-Identifier: Apache-2.0
#include "core/fd.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/check.h"

namespace mc {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Error system_error(ErrorCode code, const std::string& what) {
  return Error{code, what + ": " + std::strerror(errno)};
}

Result<Fd> make_growing_memfd(const std::string& name) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return system_error(ErrorCode::kUnavailable, "memfd_create " + name);
  return fd;
}

Result<Fd> make_memfd(const std::string& name, size_t size) {
  MC_TRY(Fd fd, make_growing_memfd(name), "memfd of a fixed size");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return system_error(ErrorCode::kIo, "set the size of memfd " + name);
  }
  return fd;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(ErrorCode::kUnavailable, "pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::string read_to_end(const Fd& fd) {
  MC_CHECK(fd.is_open());
  std::string text;
  char block[4096];
  for (;;) {
    const ssize_t size = ::read(fd.get(), block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(block, static_cast<size_t>(size));
  }
}

bool lock_file(const Fd& fd, int operation) {
  MC_CHECK(fd.is_open());
  int result = 0;
  do {
    result = ::flock(fd.get(), operation);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

Result<Mapping> Mapping::create(const Fd& fd, size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return system_error(ErrorCode::kIo, "map a region");
  return Mapping(data, size);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::string_view Mapping::text() const {
  const char* begin = static_cast<const char*>(data_);
  return {begin, ::strnlen(begin, size_)};
}

}  // namespace mc
