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

// Writes a temporary file beside `path` and renames it over.  For files that the program names
// itself: one that the user names may be a device or a link, which the new file would replace.
Status write_file_atomically(const std::filesystem::path& path, std::string_view text);

// ---- Outputs that the user names ----------------------------------------------------------------

// kInvalidInput where write_output() cannot write the file: "" or a folder, or a file in a folder
// that is not there or cannot be written.
Status check_output(const std::filesystem::path& path);
// The same for a folder that is made where it is not there.
Status check_output_folder(const std::filesystem::path& path);
// The regular file that `path` means, symbolic links followed, whether it is there or not; ""
// where that is a device, a pipe, or this process's own standard output or error.
std::filesystem::path output_target(const std::filesystem::path& path);
// Writes a regular file as write_file_atomically() does, and any other in place.
Status write_output(const std::filesystem::path& path, std::string_view text);
// kIo where a byte of standard output was lost.
Status flush_standard_output();

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
