// SPDX-License-Identifier: Apache-2.0
//
// ProgressBar: one line on standard error, redrawn in place each second.  If standard error is not
// a terminal, there is a line for each long step, and one a minute.  Thread-safe.
#ifndef MC_CLI_PROGRESS_H_
#define MC_CLI_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace mc::cli {

class ProgressBar {
 public:
  explicit ProgressBar(size_t total);
  ~ProgressBar() { finish(); }
  // Begins a long step whose progress is not counted.  The text should contain its expected
  // duration.
  void note(std::string_view step);
  // Counts one more completed item.
  void advance(std::string_view what);
  // Sets the counts, for work whose total changes.
  void show(size_t done, size_t total, std::string_view what);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void tick(const std::stop_token& stop);
  // REQUIRES of these functions: mutex_ is held.
  void count(size_t done, std::string_view what);
  std::string line() const;
  void draw();

  // Constant after construction.
  const bool is_terminal_;
  const Clock::time_point start_;

  std::mutex mutex_;  // The mutex guards the members below.
  std::condition_variable_any ended_;
  size_t total_ = 0;
  size_t done_ = 0;
  std::string text_;
  bool is_step_ = false;  // True if the text describes a step whose progress is not counted.
  Clock::time_point text_since_;
  // The remaining time is estimated from the work since this time.
  Clock::time_point counted_since_;
  size_t counted_from_ = 0;
  Clock::time_point printed_;  // The time of the last line, without a terminal.
  bool drawn_ = false;
  std::jthread ticker_;
};

}  // namespace mc::cli

#endif  // MC_CLI_PROGRESS_H_
