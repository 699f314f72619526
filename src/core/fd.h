// SPDX-License-Identifier: Apache-2.0
//
// Fd: owns one file descriptor.  Moved, never copied; closed once.
#ifndef MC_CORE_FD_H_
#define MC_CORE_FD_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"

namespace mc {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset();
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Errno as an Error: "<what>: <strerror>".
Error system_error(ErrorCode code, const std::string& what);

// An anonymous file of `size` zero bytes, close-on-exec.  Its size is sealed: a process that shares
// the file cannot shrink it and so cause a SIGBUS in a mapping.
Result<Fd> make_memfd(const std::string& name, size_t size);
// An empty anonymous file that grows with each write.  It must not be mapped.
Result<Fd> make_growing_memfd(const std::string& name);

// A pipe; both ends are close-on-exec.
struct Pipe {
  Fd reader;
  Fd writer;
};
Result<Pipe> make_pipe();

// The bytes from the descriptor's position to the end of a file, or until all writers of a pipe
// have closed it.  A failed read ends the text.
std::string read_to_end(const Fd& fd);

// Calls flock(2) again after an interrupting signal.  True if the lock was granted.
bool lock_file(const Fd& fd, int operation);

// A private mapping of a file descriptor's first `size` bytes; unmapped at the end of its life.
class Mapping {
 public:
  static Result<Mapping> create(const Fd& fd, size_t size);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  // The text up to the first NUL byte.
  std::string_view text() const;

 private:
  Mapping(void* data, size_t size) : data_(data), size_(size) {}
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mc

#endif  // MC_CORE_FD_H_
