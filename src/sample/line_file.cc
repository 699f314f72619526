// SPDX-License-Identifier: Apache-2.0
#include "sample/line_file.h"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/check.h"
#include "core/file.h"

namespace mc::sample {
namespace {

constexpr size_t kBytesMax = size_t{2} << 30;

// How many bytes the whole lines are.
Result<size_t> for_each_line(const std::filesystem::path& path, std::string_view text,
                             const LineFile::Reader& read) {
  size_t begin = 0;
  for (size_t number = 1;; ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return begin;
    const std::string place = fmt::format("{}: line {}", path.string(), number);
    MC_TRY_VOID(read(text.substr(begin, end - begin)), place);
    begin = end + 1;
  }
}

}  // namespace

Result<LineFile> LineFile::open(const std::filesystem::path& path, const Reader& read) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.is_open()) return system_error(ErrorCode::kIo, "cannot open " + path.string());
  MC_TRY(const std::string text, read_file(path, kBytesMax), "resume");
  MC_TRY(const size_t whole, for_each_line(path, text, read), "resume");
  if (whole < text.size() && ::ftruncate(fd.get(), static_cast<off_t>(whole)) != 0) {
    return system_error(ErrorCode::kIo, "cannot shorten " + path.string());
  }
  return LineFile(path, std::move(fd));
}

Status LineFile::read_lines(const std::filesystem::path& path, const Reader& read) {
  MC_TRY(const std::string text, read_file(path, kBytesMax), "read");
  MC_TRY([[maybe_unused]] const size_t whole, for_each_line(path, text, read), "read");
  return ok();
}

Status LineFile::append(std::string_view line) {
  MC_CHECK(!line.empty() && line.find('\n') == line.size() - 1);
  while (!line.empty()) {
    const ssize_t written = ::write(fd_.get(), line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(ErrorCode::kIo, "cannot write " + path_.string());
    line.remove_prefix(static_cast<size_t>(written));
  }
  return ok();
}

}  // namespace mc::sample
