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
constexpr auto kRedrawInterval = std::chrono::seconds(1);
constexpr auto kLineInterval = std::chrono::minutes(1);

// The width of the terminal on standard error.
size_t terminal_columns() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kColumnsDefault;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ProgressBar::ProgressBar(size_t total)
    : is_terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      total_(total),
      text_since_(start_),
      counted_since_(start_),
      printed_(start_),
      ticker_([this](const std::stop_token& stop) { tick(stop); }) {}

// Redraws the line regularly, so that long work is visibly alive even if nothing is counted.
void ProgressBar::tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    ended_.wait_for(lock, stop, kRedrawInterval, [] { return false; });
    if (stop.stop_requested()) return;
    if (is_terminal_ && !text_.empty()) draw();
    if (is_terminal_ || Clock::now() - printed_ < kLineInterval) continue;
    printed_ = Clock::now();
    std::fprintf(stderr, "musacoder: %s\n", line().c_str());
  }
}

void ProgressBar::note(std::string_view step) {
  const std::lock_guard lock(mutex_);
  text_ = step;
  is_step_ = true;
  text_since_ = Clock::now();
  if (is_terminal_) {
    draw();
  } else {
    printed_ = text_since_;
    std::fprintf(stderr, "musacoder: %s\n", text_.c_str());
  }
}

void ProgressBar::advance(std::string_view what) {
  const std::lock_guard lock(mutex_);
  MC_CHECK(done_ < total_);
  count(done_ + 1, what);
}

void ProgressBar::show(size_t done, size_t total, std::string_view what) {
  const std::lock_guard lock(mutex_);
  MC_CHECK(done <= total);
  total_ = total;
  count(done, what);
}

void ProgressBar::count(size_t done, std::string_view what) {
  if (is_step_) {  // The duration of a step is not included in the estimate for counted work.
    counted_since_ = text_since_;
    counted_from_ = done_;
  }
  done_ = done;
  text_ = what;
  is_step_ = false;
  if (is_terminal_) draw();
}

void ProgressBar::finish() {
  ticker_.request_stop();
  if (ticker_.joinable()) ticker_.join();
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
}

std::string ProgressBar::line() const {
  if (is_step_) return fmt::format("{}: {:.0f} s", text_, seconds_since(text_since_));
  const std::string counts = fmt::format("{}/{} {:.0f} s", done_, total_, seconds_since(start_));
  const size_t num = done_ - std::min(done_, counted_from_);
  const double left_s = num == 0
                            ? 0
                            : seconds_since(counted_since_) * static_cast<double>(total_ - done_) /
                                  static_cast<double>(num);
  const std::string left =
      left_s > 0 ? fmt::format(", about {} s left", std::lround(left_s)) : std::string();
  return counts + left + (text_.empty() ? "" : "  " + text_);
}

void ProgressBar::draw() {
  MC_CHECK(done_ <= total_);
  const size_t filled = total_ == 0 ? 0 : kBarColumns * done_ / total_;
  const std::string bar =
      "[" + std::string(filled, '#') + std::string(kBarColumns - filled, '.') + "] ";
  std::string shown = (is_step_ ? "" : bar) + line();
  // A longer text would wrap to a second line, which would not be erased.
  shown.resize(std::min(shown.size(), terminal_columns() - 1));
  std::fprintf(stderr, "\r\033[K%s", shown.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace mc::cli
