// SPDX-License-Identifier: Apache-2.0
//
// Whole files: reading is limited in size, and a write is atomic: a reader sees the old text or the
// new one.
#ifndef MC_CORE_FILE_H_
#define MC_CORE_FILE_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/result.h"

namespace mc {

// The file's bytes.  kNotFound, kIo, or kInvalidInput when the file has more than `size_max` bytes
// or is a pipe that nobody writes to.
Result<std::string> read_file(const std::filesystem::path& path, size_t size_max);

// Writes a temporary file beside `path` and renames it to `path`.  Only for files that the program
// itself names: a path from the user may be a device or a link, which the rename would replace.
Status write_file_atomically(const std::filesystem::path& path, std::string_view text);

// True if there is a file of any kind at `path`; an error counts as none.
bool path_exists(const std::filesystem::path& path);

// ---- Outputs that the user names ----------------------------------------------------------------

// kInvalidInput where write_output() could not write the file: the path is "" or a folder, or its
// folder does not exist or is not writable.
Status check_output(const std::filesystem::path& path);
// The same check for an output folder, which is made where it does not exist.
Status check_output_folder(const std::filesystem::path& path);
// The path of the regular file that `path` refers to, existing or not, with symbolic links
// resolved.  "" where `path` is a device, a pipe, or this process's own standard output or error.
std::filesystem::path output_target(const std::filesystem::path& path);
// Writes a regular file as write_file_atomically() does, and writes to any other kind of file in
// place.
Status write_output(const std::filesystem::path& path, std::string_view text);
// kIo where a byte of standard output could not be written.
Status flush_standard_output();

// A directory that is removed, with everything in it, by the destructor.
class TemporaryDirectory {
 public:
  // Makes the directory in the system's temporary directory, or in `parent`, which is made where it
  // does not exist.
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

// Makes the cache directory.  kUnavailable says why it cannot be used, and what to do.
Status prepare_cache_directory();

}  // namespace mc

#endif  // MC_CORE_FILE_H_
