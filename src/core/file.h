// SPDX-License-Identifier: Apache-2.0
//
// Whole files: read under a limit, written so that a reader sees the old text or the new one.
#ifndef MC_CORE_FILE_H_
#define MC_CORE_FILE_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/result.h"

namespace mc {

// The file's bytes.  kNotFound, kIo, or kInvalidInput when it holds more than `size_max` bytes, or
// is a pipe that stays silent.
Result<std::string> read_file(const std::filesystem::path& path, size_t size_max);

// Writes a temporary file beside `path` and renames it over.
Status write_file_atomically(const std::filesystem::path& path, std::string_view text);

// A directory that is removed, with all in it, at the end of its life.
class TemporaryDirectory {
 public:
  // In the system's temporary directory, or in `parent`, which is made when it is not there.
  static Result<TemporaryDirectory> create(const std::string& prefix);
  static Result<TemporaryDirectory> create_in(const std::filesystem::path& parent,
                                              const std::string& prefix);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// $MC_CACHE_DIR, else $XDG_CACHE_HOME/musacoder, else $HOME/.cache/musacoder; "" where none is set.
std::filesystem::path cache_directory();

// Makes it.  kUnavailable says why it cannot be used, and what to do.
Status prepare_cache_directory();

}  // namespace mc

#endif  // MC_CORE_FILE_H_
