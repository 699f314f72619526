// SPDX-License-Identifier: Apache-2.0
//
// LineFile: a file of lines that a run appends to and that survives a kill at any moment.
//
// Each line is one write at the end.  A kill, or a full disk, can leave the last line cut off: it
// has no line end, is dropped when the file is opened again, and what it told is done again.
//
//   MC_TRY(auto file, LineFile::open(path, [&](std::string_view line) { return read(line); }),
//   "…"); MC_TRY_VOID(file.append(json_line(answer)), "keep the answer");
#ifndef MC_SAMPLE_LINE_FILE_H_
#define MC_SAMPLE_LINE_FILE_H_

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/fd.h"
#include "core/result.h"

namespace mc::sample {

class LineFile {
 public:
  using Reader = std::function<Status(std::string_view line)>;

  // Makes the file where it is not there; else calls `read` with each whole line, without its end.
  // kInvalidInput where `read` refuses a line: the error names file and line.
  static Result<LineFile> open(const std::filesystem::path& path, const Reader& read);

  // The same for a file that is only read; a line that is cut off stays where it is.
  static Status read_lines(const std::filesystem::path& path, const Reader& read);

  // REQUIRES: `line` ends in its only '\n'.  After an error nothing more may be appended.
  Status append(std::string_view line);

 private:
  LineFile(std::filesystem::path path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::filesystem::path path_;
  Fd fd_;
};

}  // namespace mc::sample

#endif  // MC_SAMPLE_LINE_FILE_H_
