// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/check.h"

namespace mc::cli {
namespace {

constexpr size_t kBarColumns = 16;
constexpr size_t kColumnsDefault = 80;

// The width of the terminal on standard error.
size_t terminal_columns() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kColumnsDefault;
}

}  // namespace

ProgressBar::ProgressBar(size_t total)
    : is_terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      total_(total) {}

void ProgressBar::note(std::string_view step) {
  const std::lock_guard lock(mutex_);
  if (is_terminal_) {
    draw(step);
  } else {
    std::fprintf(stderr, "musacoder: %.*s\n", static_cast<int>(step.size()), step.data());
  }
}

void ProgressBar::advance(std::string_view what) {
  const std::lock_guard lock(mutex_);
  MC_CHECK(done_ < total_);
  ++done_;
  if (is_terminal_) draw(what);
}

void ProgressBar::show(size_t done, size_t total, std::string_view what) {
  const std::lock_guard lock(mutex_);
  MC_CHECK(done <= total);
  done_ = done;
  total_ = total;
  if (is_terminal_) draw(what);
}

void ProgressBar::finish() {
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
}

void ProgressBar::draw(std::string_view text) {
  const size_t filled = total_ == 0 ? 0 : kBarColumns * done_ / total_;
  const std::string bar = std::string(filled, '#') + std::string(kBarColumns - filled, '.');
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const double left_s = done_ == 0 ? 0
                                   : elapsed.count() * static_cast<double>(total_ - done_) /
                                         static_cast<double>(done_);
  const std::string left = left_s > 0 ? ", " + std::to_string(std::lround(left_s)) + " s left" : "";
  std::string line =
      fmt::format("[{}] {}/{} {:.0f} s{}  {}", bar, done_, total_, elapsed.count(), left, text);
  line.resize(std::min(line.size(), terminal_columns() - 1));  // A second line would stay.
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace mc::cli
